use super::*;

fn config(variables: &[(&str, &str)]) -> Result<Config> {
    Config::read(variables.iter().copied().collect())
}

#[track_caller]
fn refused(variables: &[(&str, &str)], culprit: &str) {
    match config(variables) {
        Err(Error::Setting { name, value, .. }) => {
            assert_eq!(&*name, culprit);
            let given = variables.iter().find(|(name, _)| *name == culprit).unwrap().1;
            assert_eq!(&*value, given);
        }
        other => panic!("{variables:?} gave {other:?}"),
    }
}

#[test]
fn nothing_set_gives_the_defaults() {
    let config = config(&[]).unwrap();
    assert_eq!(config.timeout, Duration::from_secs(300));
    assert_eq!(config.start_timeout, Duration::from_secs(60));
    assert_eq!(config.transport, TransportChoice::Auto);
    assert_eq!((config.rank, config.size, config.address), (None, None, None));
    assert!(config.log.is_none() && config.interfaces.is_empty() && config.port_range.is_none());
}

#[test]
fn every_variable_reaches_its_field() {
    let config = config(&[
        ("GRADWIRE_LOG", "debug"),
        ("GRADWIRE_TIMEOUT", "500ms"),
        ("GRADWIRE_START_TIMEOUT", "2m"),
        ("GRADWIRE_TRANSPORT", "tcp"),
        ("GRADWIRE_FABRIC_PROVIDER", "tcp;ofi_rxm"),
        ("GRADWIRE_INTERFACE", "eth0, 10.1.0.0/16,fd00::/8"),
        ("GRADWIRE_PORT_RANGE", "29500-29540"),
        ("GRADWIRE_TUNE", "all_reduce:0-64k=ring"),
        ("GRADWIRE_SECRET_FILE", "/run/secret"),
        ("GRADWIRE_RANK", "5"),
        ("GRADWIRE_SIZE", "7"),
        ("GRADWIRE_LOCAL_RANK", "1"),
        ("GRADWIRE_LOCAL_SIZE", "3"),
        ("GRADWIRE_ADDRESS", "head:4000"),
    ])
    .unwrap();
    assert_eq!(config.log, Some(LevelFilter::DEBUG));
    assert_eq!(config.timeout, Duration::from_millis(500));
    assert_eq!(config.start_timeout, Duration::from_secs(120));
    assert_eq!(config.transport, TransportChoice::Tcp);
    assert_eq!(config.fabric_provider.as_deref(), Some("tcp;ofi_rxm"));
    let network = |address: &str, prefix| Interface::Network { address: address.parse().unwrap(), prefix };
    let expected = [Interface::Name("eth0".into()), network("10.1.0.0", 16), network("fd00::", 8)];
    assert_eq!(config.interfaces, expected);
    assert_eq!(config.port_range, Some(29500..=29540));
    assert_eq!(config.tune.as_deref(), Some("all_reduce:0-64k=ring"));
    assert_eq!(config.secret_file, Some(PathBuf::from("/run/secret")));
    assert_eq!((config.rank, config.size), (Some(5), Some(7)));
    assert_eq!((config.local_rank, config.local_size), (Some(1), Some(3)));
    assert_eq!(config.address, Some(MeetingAddress::Tcp { host: "head".into(), port: 4000 }));
}

#[test]
fn ports_out_of_range_are_refused() {
    for port in ["123456", "-1", "abc", "", "65536", "+1", "5-4", "0-5", "1-", "-", "1-2-3", " 1"] {
        refused(&[("GRADWIRE_PORT_RANGE", port)], "GRADWIRE_PORT_RANGE");
    }
    assert_eq!(config(&[("GRADWIRE_PORT_RANGE", "0")]).unwrap().port_range, None);
    assert_eq!(config(&[("GRADWIRE_PORT_RANGE", "65535")]).unwrap().port_range, Some(65535..=65535));
}

#[test]
fn ranks_and_sizes_out_of_range_are_refused() {
    for size in ["0", "-1", "", "65537", "99999999999999999999", "2.0", "two"] {
        refused(&[("GRADWIRE_SIZE", size)], "GRADWIRE_SIZE");
    }
    refused(&[("GRADWIRE_RANK", "4"), ("GRADWIRE_SIZE", "4")], "GRADWIRE_RANK");
    refused(&[("GRADWIRE_LOCAL_RANK", "2"), ("GRADWIRE_LOCAL_SIZE", "2")], "GRADWIRE_LOCAL_RANK");
    refused(&[("GRADWIRE_LOCAL_SIZE", "3"), ("GRADWIRE_SIZE", "2")], "GRADWIRE_LOCAL_SIZE");
    assert!(config(&[("GRADWIRE_RANK", "3"), ("GRADWIRE_SIZE", "4")]).is_ok());
}

#[test]
fn durations_need_a_unit_and_a_value() {
    for text in
        ["30", "0s", "s", "", "-1s", "1.5s", "1 s", "1d", "99999999999999999999s", "18446744073709551615h"]
    {
        refused(&[("GRADWIRE_TIMEOUT", text)], "GRADWIRE_TIMEOUT");
    }
    assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
}

#[test]
fn addresses_name_a_host_and_a_port() {
    for text in
        ["", "host", "host:", ":80", "host:0", "host:65536", "fe80::1:80", "[::1]", "[host]:80", "unix:"]
    {
        refused(&[("GRADWIRE_ADDRESS", text)], "GRADWIRE_ADDRESS");
    }
    for text in ["[::1]:80", "10.0.0.1:65535", "a.b:1", "unix:job"] {
        let address = config(&[("GRADWIRE_ADDRESS", text)]).unwrap().address.unwrap();
        assert_eq!(address.to_string(), text);
    }
}

#[test]
fn words_that_are_none_of_the_choices_are_refused() {
    refused(&[("GRADWIRE_LOG", "loud")], "GRADWIRE_LOG");
    refused(&[("GRADWIRE_TRANSPORT", "TCP")], "GRADWIRE_TRANSPORT");
    for text in ["", "eth0,", "10.0.0.0/33", "nowhere/8", "fd00::/129"] {
        refused(&[("GRADWIRE_INTERFACE", text)], "GRADWIRE_INTERFACE");
    }
}

#[test]
fn an_error_names_the_variable_the_value_and_the_remedy() {
    let error = config(&[("GRADWIRE_TRANSPORT", "rdma")]).unwrap_err();
    assert_eq!(error.to_string(), "GRADWIRE_TRANSPORT is \"rdma\", but must be auto, shm, libfabric or tcp");
}

#[test]
fn what_the_program_assigns_is_checked_too() {
    let mut config = config(&[("GRADWIRE_SIZE", "4"), ("GRADWIRE_RANK", "3")]).unwrap();
    config.size = Some(3);
    assert!(matches!(config.validate(), Err(Error::Setting { .. })));
    config.rank = Some(2);
    config.timeout = Duration::ZERO;
    assert!(matches!(config.validate(), Err(Error::Setting { .. })));
}

#[test]
fn values_of_variables_are_not_in_the_debug_output() {
    let config = config(&[("SLURM_JOB_ID", "visible"), ("GRADWIRE_TUNE", "x")]).unwrap();
    assert!(!format!("{:?}", config.environment).contains("visible"));
}

#[test]
fn the_documented_table_has_every_variable_and_no_other() {
    let table = include_str!("variables.md");
    let documented: Vec<&str> =
        table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let (_, settings) = VARIABLES.split_last().unwrap();
    assert_eq!(documented, settings);
}

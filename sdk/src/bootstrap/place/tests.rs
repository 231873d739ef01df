use super::*;
use std::collections::BTreeMap;

type Variables<'a> = &'a [(&'a str, &'a str)];

const NOTHING: Variables<'_> = &[];
const MPIRUN: Variables<'_> = &[
    ("OMPI_COMM_WORLD_RANK", "1"),
    ("OMPI_COMM_WORLD_SIZE", "3"),
    ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "3"),
    ("PMIX_NAMESPACE", "prterun-host-77@1"),
    ("PMIX_RANK", "1"),
    ("PMIX_SERVER_URI41", "prterun-host-77@0.0;tcp4://127.0.0.1:45533"),
];
const HYDRA: Variables<'_> = &[
    ("PMI_FD", "7"),
    ("PMI_RANK", "2"),
    ("PMI_SIZE", "4"),
    ("MPI_LOCALRANKID", "2"),
    ("MPI_LOCALNRANKS", "4"),
];
const TORCHRUN: Variables<'_> = &[
    ("RANK", "3"),
    ("WORLD_SIZE", "4"),
    ("LOCAL_RANK", "3"),
    ("LOCAL_WORLD_SIZE", "4"),
    ("MASTER_ADDR", "localhost"),
    ("MASTER_PORT", "29500"),
    ("TORCHELASTIC_RUN_ID", "none"),
];
const SRUN: Variables<'_> = &[
    ("SLURM_JOB_ID", "4711"),
    ("SLURM_STEP_ID", "0"),
    ("SLURM_STEP_NUM_NODES", "1"),
    ("SLURM_PROCID", "1"),
    ("SLURM_NTASKS", "2"),
    ("SLURM_STEP_NUM_TASKS", "2"),
    ("SLURM_LOCALID", "1"),
];

/// The place from some variables: later ones replace earlier ones, empty ones are not set.
fn place(parts: &[Variables<'_>]) -> Result<(Place, &'static str)> {
    let variables: BTreeMap<&str, &str> = parts.iter().flat_map(|part| part.iter().copied()).collect();
    find(&Config::read(variables.into_iter().filter(|(_, value)| !value.is_empty()).collect()).unwrap())
}

#[track_caller]
fn meeting(parts: &[Variables<'_>]) -> (Seat, &'static str) {
    match place(parts) {
        Ok((Place::Meeting(seat), source)) => (seat, source),
        other => panic!("{parts:?} gave {other:?}"),
    }
}

#[track_caller]
fn reason(parts: &[Variables<'_>]) -> String {
    match place(parts) {
        Err(Error::Bootstrap(reason)) => reason.to_string(),
        other => panic!("{parts:?} gave {other:?}"),
    }
}

#[track_caller]
fn says(parts: &[Variables<'_>], words: &[&str]) {
    let reason = reason(parts);
    for word in words {
        assert!(reason.contains(word), "{word:?} is not in: {reason}");
    }
}

#[test]
fn a_process_without_a_launcher_is_alone() {
    assert_eq!(place(&[NOTHING]).unwrap().0, Place::Alone);
    // What an allocation leaves in a shell is no rank.
    assert_eq!(place(&[&[("SLURM_JOB_ID", "4711"), ("MASTER_ADDR", "a")]]).unwrap().0, Place::Alone);
}

#[test]
fn own_variables_outrank_all_others() {
    let own: Variables<'_> =
        &[("GRADWIRE_RANK", "0"), ("GRADWIRE_SIZE", "2"), ("GRADWIRE_ADDRESS", "head:4000")];
    for other in [NOTHING, MPIRUN, HYDRA, TORCHRUN, SRUN] {
        let (seat, source) = meeting(&[own, other]);
        assert_eq!((seat.rank, seat.size, seat.is_hosted), (0, 2, false));
        assert_eq!(seat.address.to_string(), "head:4000");
        assert_eq!(source, "the settings");
    }
    assert_eq!(place(&[MPIRUN, &[("GRADWIRE_SIZE", "1")]]).unwrap().0, Place::Alone);
}

#[test]
fn a_launcher_of_ours_hosts_the_meeting() {
    let address = MeetingAddress::Unix("gradwire-1".into());
    let environment: Environment =
        launch::of_rank(2, 5, Local { rank: 2, size: 5 }, &address).into_iter().collect();
    let (place, source) = find(&Config::read(environment).unwrap()).unwrap();
    let local = Some(Local { rank: 2, size: 5 });
    assert_eq!(place, Place::Meeting(Seat { rank: 2, size: 5, local, address, is_hosted: true }));
    assert_eq!(source, "gradwire's launcher");
}

#[test]
fn a_part_of_the_own_variables_is_an_error() {
    says(&[&[("GRADWIRE_RANK", "1")]], &["GRADWIRE_RANK=1; missing: GRADWIRE_SIZE, GRADWIRE_ADDRESS"]);
    says(&[&[("GRADWIRE_SIZE", "2")]], &["GRADWIRE_SIZE=2; missing: GRADWIRE_RANK, GRADWIRE_ADDRESS"]);
    says(&[&[("GRADWIRE_SIZE", "2"), ("GRADWIRE_RANK", "1")]], &["missing: GRADWIRE_ADDRESS"]);
    says(
        &[&[("GRADWIRE_ADDRESS", "a:1")]],
        &["GRADWIRE_ADDRESS=a:1", "missing: GRADWIRE_RANK, GRADWIRE_SIZE"],
    );
}

#[test]
fn open_mpi_on_one_host_meets_at_a_name_of_its_own() {
    let (seat, source) = meeting(&[MPIRUN]);
    assert_eq!((seat.rank, seat.size, seat.local), (1, 3, Some(Local { rank: 1, size: 3 })));
    assert_eq!(source, "Open MPI");
    assert!(matches!(seat.address, MeetingAddress::Unix(_)), "{seat:?}");

    // All ranks of the job go to the same place, ranks of another job do not.
    let rank_0 = [("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_LOCAL_RANK", "0"), ("PMIX_RANK", "0")];
    assert_eq!(meeting(&[MPIRUN, &rank_0]).0.address, seat.address);
    for other in [("PMIX_NAMESPACE", "prterun-host-78@1"), ("PMIX_SERVER_URI41", "tcp4://127.0.0.1:1")] {
        assert_ne!(meeting(&[MPIRUN, &[other]]).0.address, seat.address);
    }
}

#[test]
fn several_hosts_need_an_address() {
    let two_hosts: Variables<'_> = &[("OMPI_COMM_WORLD_LOCAL_SIZE", "")];
    let no_pmix: Variables<'_> = &[("PMIX_RANK", "")];
    says(
        &[MPIRUN, two_hosts, no_pmix],
        &["GRADWIRE_ADDRESS=HOST:PORT", "Open MPI", "OMPI_COMM_WORLD_SIZE=3"],
    );
    let (seat, source) = meeting(&[MPIRUN, two_hosts, &[("GRADWIRE_ADDRESS", "[::1]:7000")]]);
    assert_eq!((seat.rank, seat.size, source), (1, 3, "Open MPI"));
    assert_eq!(seat.address.to_string(), "[::1]:7000");
}

#[test]
fn several_hosts_meet_through_pmix_where_the_launcher_offers_it() {
    let of_mpirun: Variables<'_> = &[("OMPI_COMM_WORLD_LOCAL_SIZE", "2")];
    let (place_of_mpirun, source) = place(&[MPIRUN, of_mpirun]).unwrap();
    assert!(matches!(place_of_mpirun, Place::Pmix(_)), "{place_of_mpirun:?}");
    assert_eq!(source, "Open MPI");
    let of_srun: Variables<'_> =
        &[("SLURM_STEP_NUM_NODES", "2"), ("PMIX_NAMESPACE", "slurm.pmix.4711.0"), ("PMIX_RANK", "1")];
    assert!(matches!(place(&[SRUN, of_srun]).unwrap().0, Place::Pmix(_)));
    says(&[SRUN, &[("SLURM_STEP_NUM_NODES", "2")]], &["GRADWIRE_ADDRESS=HOST:PORT", "Slurm"]);
}

#[test]
fn hydra_is_reached_through_its_descriptor_or_port() {
    let (place_of_hydra, source) = place(&[HYDRA]).unwrap();
    assert!(matches!(place_of_hydra, Place::Pmi(_)), "{place_of_hydra:?}");
    assert_eq!(source, "PMI");
    let port: Variables<'_> = &[("PMI_PORT", "host:4000"), ("PMI_ID", "1"), ("MPI_LOCALNRANKS", "2")];
    assert!(matches!(place(&[port]).unwrap().0, Place::Pmi(_)));
    says(&[&[("PMI_PORT", "host:4000")]], &["missing: PMI_ID"]);
    for bad in ["x", "-1", "2", "4294967296"] {
        let error = place(&[HYDRA, &[("PMI_FD", bad)]]).unwrap_err();
        assert!(matches!(&error, Error::Setting { name, .. } if &**name == "PMI_FD"), "{error}");
    }
}

#[test]
fn torchrun_meets_beside_its_own_port() {
    let (seat, source) = meeting(&[TORCHRUN]);
    assert!(matches!(seat.address, MeetingAddress::Unix(_)), "{seat:?}");
    assert_eq!((seat.rank, seat.size, source), (3, 4, "torchrun"));
    let several_hosts = meeting(&[TORCHRUN, &[("LOCAL_WORLD_SIZE", "")]]).0;
    assert_eq!(several_hosts.address.to_string(), "localhost:29501");
    let variables: Variables<'_> =
        &[("RANK", "0"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "a"), ("MASTER_PORT", "65535")];
    assert!(matches!(place(&[variables]), Err(Error::Setting { name, .. }) if &*name == "MASTER_PORT"));
}

#[test]
fn slurm_meets_on_one_host() {
    let (seat, source) = meeting(&[SRUN]);
    assert_eq!((seat.rank, seat.size, source), (1, 2, "Slurm"));
    assert!(matches!(seat.address, MeetingAddress::Unix(_)));
}

/// Case 29.
#[test]
fn a_size_without_wiring_never_becomes_a_job_of_one() {
    for rank in ["0", "1", "2", "3"] {
        let variables = [("SLURM_NTASKS", "4"), ("SLURM_PROCID", rank)];
        let error = find(&Config::read(variables.into_iter().collect()).unwrap()).unwrap_err().to_string();
        for word in
            ["SLURM_NTASKS=4", &format!("SLURM_PROCID={rank}"), "missing: SLURM_JOB_ID, SLURM_STEP_ID"]
        {
            assert!(error.contains(word), "{error}");
        }
    }
    says(&[&[("PMI_SIZE", "4")]], &["PMI_SIZE=4", "missing: PMI_FD, PMI_RANK", "unset what is left over"]);
    says(&[&[("PMI_RANK", "0"), ("PMI_SIZE", "4")]], &["missing: PMI_FD"]);
    says(&[&[("PMI_FD", "5")]], &["PMI_FD=5", "missing: PMI_RANK, PMI_SIZE"]);
    says(&[&[("OMPI_COMM_WORLD_SIZE", "8")]], &["missing: PMIX_NAMESPACE, OMPI_COMM_WORLD_RANK"]);
    says(&[&[("WORLD_SIZE", "2"), ("RANK", "0")]], &["missing: MASTER_ADDR, MASTER_PORT"]);
}

#[test]
fn a_size_of_one_needs_no_wiring() {
    for variables in
        [[("SLURM_NTASKS", "1")], [("PMI_SIZE", "1")], [("WORLD_SIZE", "1")], [("OMPI_COMM_WORLD_SIZE", "1")]]
    {
        assert_eq!(find(&Config::read(variables.into_iter().collect()).unwrap()).unwrap().0, Place::Alone);
    }
}

/// Case 30, as the next two.
#[test]
fn launchers_that_contradict_each_other_are_both_printed() {
    says(
        &[MPIRUN, TORCHRUN],
        &["two launchers", "Open MPI (OMPI_COMM_WORLD_RANK=1", "torchrun (RANK=3", "outrank"],
    );
    says(&[HYDRA, MPIRUN], &["PMI (PMI_RANK=2", "Open MPI"]);
    // Left over from something that ran before.
    says(&[TORCHRUN, &[("OMPI_COMM_WORLD_SIZE", "8")]], &["OMPI_COMM_WORLD_SIZE=8", "torchrun"]);
    says(&[MPIRUN, &[("PMI_SIZE", "4")]], &["PMI_SIZE=4", "Open MPI"]);
}

#[test]
fn launchers_that_agree_are_no_contradiction() {
    let agreeing: Variables<'_> =
        &[("RANK", "1"), ("WORLD_SIZE", "3"), ("MASTER_ADDR", "a"), ("MASTER_PORT", "1")];
    assert_eq!(meeting(&[MPIRUN, agreeing]).1, "Open MPI");
}

#[test]
fn slurm_around_another_launcher_gives_way() {
    assert_eq!(meeting(&[SRUN, TORCHRUN]).1, "torchrun");
    assert_eq!(meeting(&[SRUN, MPIRUN]).1, "Open MPI");
    assert_eq!(meeting(&[&[("SLURM_NTASKS", "8")], MPIRUN]).1, "Open MPI");
    // srun speaks PMI to its own tasks, here to the one that became torchrun.
    let pmi_of_srun: Variables<'_> = &[("PMI_FD", "9"), ("PMI_RANK", "1"), ("PMI_SIZE", "2")];
    assert_eq!(meeting(&[SRUN, pmi_of_srun, TORCHRUN]).1, "torchrun");
    assert_eq!(place(&[SRUN, pmi_of_srun]).unwrap().1, "PMI");
}

#[test]
fn values_that_make_no_sense_name_their_variable() {
    let cases: [(&[(&str, &str)], &str); 5] = [
        (&[("PMI_RANK", "x"), ("PMI_SIZE", "2")], "PMI_RANK"),
        (&[("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "3")], "OMPI_COMM_WORLD_RANK"),
        (&[("WORLD_SIZE", "-1")], "WORLD_SIZE"),
        (&[("WORLD_SIZE", "0")], "WORLD_SIZE"),
        (&[("SLURM_PROCID", ""), ("SLURM_NTASKS", "2")], "SLURM_PROCID"),
    ];
    for (variables, culprit) in cases {
        let error = find(&Config::read(variables.iter().copied().collect()).unwrap()).unwrap_err();
        assert!(matches!(&error, Error::Setting { name, .. } if &**name == culprit), "{culprit}: {error}");
    }
}

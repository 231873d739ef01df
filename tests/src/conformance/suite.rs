//! The list of all tests.

/// Turns each test of the suite into a `#[test]` for one [`Backend`](crate::conformance::Backend).
#[macro_export]
macro_rules! conformance_suite {
    ($backend:ty) => {
        $crate::conformance_suite! { @tests $backend;
            atomic: additions_are_atomic swaps_compare;
            connection:
                both_sides_have_to_connect
                addresses_are_constant_and_distinct
                many_peers_reach_each_other
                a_stranger_is_refused
                connecting_to_oneself_is_an_error
                nonsense_is_no_address
                a_peer_name_is_used_once
                a_connection_can_be_made_anew
                disconnecting_with_flush_delivers_what_was_sent
                disconnecting_ends_operations_under_way;
            loss:
                a_dead_peer_ends_its_operations
                a_dead_peer_is_noticed_in_silence
                a_peer_that_dies_before_connecting_is_lost
                last_words_are_heard
                what_was_said_before_the_end_is_heard;
            message:
                messages_arrive_whole_and_in_order
                a_message_that_is_too_long_is_an_error
                full_has_queued_nothing
                activity_announces_room;
            put:
                puts_write_what_they_say_and_nothing_else
                empty_puts_carry_their_notice
                a_notice_means_that_the_bytes_are_there
                a_source_may_be_changed_once_its_put_is_done
                an_undriven_target_gets_everything_later
                puts_outside_are_refused_at_the_origin
                many_origins_share_a_target
                gets_fetch_what_they_say;
            random: random_operations_agree_with_a_model;
            region:
                region_names_are_never_reused
                remote_names_are_never_reused
                allocations_belong_to_their_holder
                a_changed_key_opens_nothing
                a_put_outside_costs_the_connection
                a_forged_key_costs_the_connection
                only_connected_peers_have_keys;
            revoke:
                a_queue_does_not_read_a_revoked_source
                peers_do_not_write_a_revoked_target
                a_new_region_gets_nothing_of_the_old_one
                gets_respect_revocation;
            time:
                time_is_what_the_caller_says
                time_may_stand_still
                a_sleeper_is_woken
                sleeping_endpoints_make_progress
                threads_that_sleep_wake_each_other;
        }
    };
    (@tests $backend:ty; $($module:ident: $($test:ident)+;)+) => {
        $($(
            #[test]
            fn $test() {
                if let Some(why) = <$backend as $crate::conformance::Backend>::missing() {
                    return $crate::conformance::Cluster::<$backend>::skip(stringify!($test), &why);
                }
                $crate::conformance::$module::$test::<$backend>();
            }
        )+)+
    };
}

#[cfg(test)]
mod tests {
    /// A test that is written and not listed would never run.
    #[test]
    fn every_test_is_listed() {
        let list = include_str!("suite.rs");
        let sources = [
            include_str!("atomic.rs"),
            include_str!("connection.rs"),
            include_str!("loss.rs"),
            include_str!("message.rs"),
            include_str!("put.rs"),
            include_str!("random.rs"),
            include_str!("region.rs"),
            include_str!("revoke.rs"),
            include_str!("time.rs"),
        ];
        let tests = sources.iter().flat_map(|source| source.lines()).filter_map(|line| {
            line.strip_prefix("pub fn ").and_then(|rest| rest.strip_suffix("<B: Backend>() {"))
        });
        let tests: Vec<&str> = tests.collect();
        assert!(tests.len() > 30, "{tests:?}");
        for test in tests {
            assert!(list.contains(&format!(" {test}")), "{test} is not in the list");
        }
    }
}

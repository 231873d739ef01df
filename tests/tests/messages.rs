//! Messages between two ranks, over every transport.

mod messages {
    pub(crate) mod buffered;
    pub(crate) mod matching;
    pub(crate) mod plain;
    pub(crate) mod probing;
    pub(crate) mod started;
    pub(crate) mod storm;
}

/// The same tests over several transports.
macro_rules! over {
    ($($over:ident as $name:ident),*: $($test:path => $function:ident,)*) => {
        over!(@ [$($over as $name),*] [$($test => $function,)*]);
    };
    (@ [$($over:ident as $name:ident),*] $tests:tt) => {
        $(mod $name { over!(# $over $tests); })*
    };
    (# $over:ident [$($test:path => $function:ident,)*]) => {
        $(
            #[test]
            fn $function() {
                gradwire_tests::ranks::Over::$over.try_out($test);
            }
        )*
    };
}

over! {
    Sim as sim, HostileSim as hostile_sim, Shm as shm, Libfabric as libfabric, Tcp as tcp:
    crate::messages::plain::of_any_length => of_any_length,
    crate::messages::plain::both_send_first => both_send_first,
    crate::messages::plain::around_a_ring => around_a_ring,
    crate::messages::plain::replaced_values => replaced_values,
    crate::messages::plain::a_synchronous_send_waits => a_synchronous_send_waits,
    crate::messages::plain::to_oneself => to_oneself,
    crate::messages::plain::what_does_not_fit => what_does_not_fit,
    crate::messages::plain::what_nobody_receives => what_nobody_receives,
    crate::messages::plain::structs_with_padding => structs_with_padding,
    crate::messages::buffered::both_send_first => both_buffer_first,
    crate::messages::buffered::a_full_buffer => a_full_buffer,
    crate::messages::buffered::a_dropped_communicator => a_dropped_communicator,
    crate::messages::matching::the_order_is_kept => the_order_is_kept,
    crate::messages::matching::short_and_long_ones_in_turn => short_and_long_ones_in_turn,
    crate::messages::matching::many_more_than_fit => many_more_than_fit,
    crate::messages::matching::a_thread_for_each_communicator => a_thread_for_each_communicator,
    crate::messages::probing::what_waits => what_waits,
    crate::messages::probing::held_messages => held_messages,
    crate::messages::probing::whoever_has_left => whoever_has_left,
    crate::messages::started::owned_buffers => owned_buffers,
    crate::messages::started::borrowed_slices => borrowed_slices,
    crate::messages::started::forgotten_requests => forgotten_requests,
    crate::messages::started::without_a_caller => without_a_caller,
    crate::messages::started::packed_structs => packed_structs,
    crate::messages::storm::storm => storm,
}

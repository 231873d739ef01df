//! What users of collective libraries really met, on ranks that are threads: each test is named by what it shows.

/// The same tests over several transports.
macro_rules! over {
    ($($over:ident),*: $($test:ident),* $(,)?) => { over!(@each [$($over)*] ($($test)*)); };
    (@each [$($over:ident)*] $tests:tt) => { $(over!(@module $over $tests);)* };
    (@module $over:ident ($($test:ident)*)) => {
        #[expect(non_snake_case, reason = "named as the transport is")]
        mod $over {
            $(
                #[test]
                fn $test() { super::$test(gradwire_tests::ranks::Over::$over); }
            )*
        }
    };
}

mod agreement;
mod bits;
mod ending;
mod giving_up;
mod numbers;
mod waiting;

//! The names that attributes may use without a path.

/// The reductions of `gradwire_schema::operation` that a field can name.
pub(crate) const REDUCTIONS: [&str; 15] = [
    "Sum",
    "Average",
    "Product",
    "Min",
    "Max",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "LogicalAnd",
    "LogicalOr",
    "LogicalXor",
    "WideSum",
    "WideAverage",
    "ReproducibleSum",
    "ReproducibleAverage",
];

/// The numbers that tensors are made of.
pub(crate) const NUMBERS: [&str; 14] =
    ["f64", "f32", "f16", "bf16", "F8E4m3", "F8E5m2", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"];

/// The floats that a tensor can travel as, by the name of their datatype, and their Rust type.
pub(crate) const WIRES: [(&str, &str); 6] = [
    ("f64", "f64"),
    ("f32", "f32"),
    ("f16", "f16"),
    ("bf16", "bf16"),
    ("f8e4m3", "F8E4m3"),
    ("f8e5m2", "F8E5m2"),
];

/// The reduction that people mean by a name from elsewhere.
pub(crate) fn reduction_meant(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase().replace('_', "");
    let meant = match lower.as_str() {
        "avg" | "mean" => "Average",
        "add" | "plus" | "total" => "Sum",
        "prod" | "mul" | "multiply" => "Product",
        "minimum" => "Min",
        "maximum" => "Max",
        "band" | "bitand" => "BitwiseAnd",
        "bor" | "bitor" => "BitwiseOr",
        "bxor" | "bitxor" => "BitwiseXor",
        "and" | "land" | "all" => "LogicalAnd",
        "or" | "lor" | "any" => "LogicalOr",
        "xor" | "lxor" => "LogicalXor",
        _ => return REDUCTIONS.into_iter().find(|known| known.to_lowercase() == lower),
    };
    Some(meant)
}

/// Why a reduction of ours is none that a field can name, and what to do instead.
pub(crate) fn reduction_elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "MinLoc" | "MaxLoc" => {
            "needs an index beside each value, which a tensor does not have: call `all_reduce` on a slice of `Located`"
        }
        "PreMultipliedSum" => {
            "has a factor that is known at run time only: multiply the tensor before the call and write `Sum`, or call `all_reduce` on it"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::reduction_meant;

    #[test]
    fn names_from_elsewhere_are_understood() {
        assert_eq!(reduction_meant("sum"), Some("Sum"));
        assert_eq!(reduction_meant("AVG"), Some("Average"));
        assert_eq!(reduction_meant("BIT_OR"), Some("BitwiseOr"));
        assert_eq!(reduction_meant("Median"), None);
    }
}

//! Where the launcher's PMIx library may be.
#![forbid(unsafe_code)]

use crate::Config;
use std::path::{Path, PathBuf};

const NAME: &str = "libpmix.so.2";

/// Paths to try one after the other; the last is a name that the system's loader looks up.
///
/// `GRADWIRE_PMIX` outranks all others. The library of the launcher that started this process comes before the system's:
/// Open MPI 5 brings its own, and says where (`PMIX_PREFIX`, `OMPI_LIBDIR_LOC`).
pub(super) fn candidates(config: &Config) -> Vec<PathBuf> {
    if let Some(path) = &config.pmix {
        return vec![path.clone()];
    }
    let environment = &config.environment;
    let within = |name, folder: &str| Some(Path::new(environment.get(name)?).join(folder).join(NAME));
    let told =
        [within("PMIX_PREFIX", "lib"), within("OMPI_LIBDIR_LOC", "openmpi"), within("OMPI_LIBDIR_LOC", "")];
    told.into_iter().flatten().filter(|path| path.is_absolute()).chain([PathBuf::from(NAME)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Vec<String> {
        let paths = candidates(&Config::read(variables.iter().copied().collect()).unwrap());
        paths.iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn the_launchers_own_library_comes_before_the_systems() {
        assert_eq!(from(&[]), ["libpmix.so.2"]);
        assert_eq!(
            from(&[("PMIX_PREFIX", "/opt/pmix"), ("OMPI_LIBDIR_LOC", "/opt/ompi/lib")]),
            [
                "/opt/pmix/lib/libpmix.so.2",
                "/opt/ompi/lib/openmpi/libpmix.so.2",
                "/opt/ompi/lib/libpmix.so.2",
                "libpmix.so.2"
            ]
        );
    }

    #[test]
    fn what_the_user_says_is_the_only_one() {
        assert_eq!(from(&[("GRADWIRE_PMIX", "/x/libpmix.so.2"), ("PMIX_PREFIX", "/y")]), ["/x/libpmix.so.2"]);
    }

    #[test]
    fn a_place_relative_to_the_current_folder_is_none() {
        assert_eq!(from(&[("PMIX_PREFIX", "lib")]), ["libpmix.so.2"]);
    }
}

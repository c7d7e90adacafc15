//! A small file that another process cuts while it is read.

use std::fs::File;

use anden_base::storage::{DiskStorage, Storage};

#[test]
fn cut_small_file_keeps_its_bytes() {
    let folder = std::env::temp_dir().join(format!("anden-small-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("file");
    for num_bytes in [0, 10, 5000, 64 << 10] {
        let content: Vec<u8> = (0..num_bytes).map(|place| (place % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let bytes = DiskStorage.open_dir(&folder).unwrap().read(&path).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(num_bytes / 3).unwrap();
        // A map would show zeros to the end of its last page, and no page behind.
        assert_eq!(bytes.as_slice(), content);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

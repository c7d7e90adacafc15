//! Each rule finds a planted breach, and accepts the nearest correct code.

use super::*;

type FileRule = fn(&Path, &Source, &mut Vec<Fault>);
type LineRule = fn(&Path, &[String], &mut Vec<Fault>);

fn lines_of(faults: &[Fault]) -> Vec<usize> {
    faults.iter().map(|fault| fault.line).collect()
}

fn rust(rule: FileRule, text: &str) -> Vec<usize> {
    let mut faults = Vec::new();
    rule(Path::new("x.rs"), &Source::new(text), &mut faults);
    lines_of(&faults)
}

fn plain(rule: LineRule, text: &str) -> Vec<usize> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut faults = Vec::new();
    rule(Path::new("x"), &lines, &mut faults);
    lines_of(&faults)
}

fn names(path: &str, text: &str) -> Vec<usize> {
    let mut faults = Vec::new();
    module_names(Path::new(path), Some(&Source::new(text)), &mut faults);
    lines_of(&faults)
}

#[test]
fn a_file_has_at_most_800_lines() {
    let mut faults = Vec::new();
    file_length(Path::new("x"), 800, &mut faults);
    assert!(faults.is_empty());
    file_length(Path::new("x"), 801, &mut faults);
    assert_eq!(faults[0].to_string(), "x:801: 801 lines, at most 800: split the file by concept");
}

#[test]
fn markers_are_whole_words() {
    for marker in LEFTOVERS {
        assert_eq!(plain(leftover_markers, &format!("fine\nsay({marker}) # {marker}: later")), [2]);
        assert_eq!(plain(leftover_markers, &format!("mktemp {marker}{marker} _{marker}")), [0; 0]);
    }
}

#[test]
fn paths_of_one_machine_are_found_wherever_they_start() {
    for folder in MACHINE_FOLDERS {
        assert_eq!(plain(machine_paths, &format!("ok\ncd {folder}/x\n\"{folder}\"\n(={folder}/y)")), [2, 3, 4]);
        let inside = format!("a{folder}/x {folder}bench $HOME{folder} ${{X}}{folder} ./{folder} ..{folder}");
        assert_eq!(plain(machine_paths, &inside), [0; 0]);
    }
}

#[test]
fn names_that_say_nothing_are_refused() {
    for name in EMPTY_NAMES {
        assert_eq!(names(&format!("crates/x/src/{name}.rs"), ""), [1]);
        assert_eq!(names(&format!("crates/x/tests/{name}/mod.rs"), ""), [1]);
        assert_eq!(names("x.rs", &format!("\npub mod {name} {{}}")), [2]);
        assert_eq!(names(&format!("crates/x/src/{name}_set.rs"), &format!("// mod {name};")), [0; 0]);
    }
    assert_eq!(names("src/loader_v2.rs", "mod reader_v10;"), [1, 1]);
    assert_eq!(names("src/level_values.rs", "mod over_view;"), [0; 0]);
}

#[test]
fn a_file_opens_with_its_module_doc() {
    assert_eq!(rust(module_doc, "use std::fmt;\n//! late"), [1]);
    assert_eq!(rust(module_doc, ""), [1]);
    assert_eq!(rust(module_doc, "//!\nuse x;"), [1]);
    assert_eq!(rust(module_doc, "//! What it is for."), [0; 0]);
    assert_eq!(rust(module_doc, "// SPDX-License-Identifier: Apache-2.0\n#![no_main]\n\n//! What."), [0; 0]);
}

#[test]
fn leftover_code_is_found_in_code_only() {
    for (text, _) in LEFTOVER_CODE {
        assert_eq!(rust(leftover_code, &format!("fn f() {{\n    {text}(x)\n}}")), [2], "{text}");
        assert_eq!(rust(leftover_code, &format!("// {text}(x)\nf(\"{text}\")")), [0; 0], "{text}");
    }
    for fence in LEFTOVER_FENCES {
        assert_eq!(rust(leftover_code, &format!("/// {fence}\n/// ```")), [1]);
    }
}

fn function(head: &str, num_lines: usize, indent: &str) -> String {
    format!("{indent}{head}\n{}{indent}}}\n", format!("{indent}    let s = \"}}\"; // }}\n").repeat(num_lines - 2))
}

#[test]
fn a_function_has_at_most_70_lines() {
    for head in ["fn f() {", "pub(crate) const unsafe fn f<T: Fn(u8) -> [u8; 2]>(x: [u8; 3]) -> u8 {", "async fn f() {"]
    {
        for indent in ["", "        "] {
            assert_eq!(rust(function_lengths, &function(head, 70, indent)), [0; 0], "{head}");
            assert_eq!(rust(function_lengths, &("\n".to_owned() + &function(head, 71, indent))), [2], "{head}");
        }
    }
    let wrapped = format!("fn f(\n    x: u8,\n)\nwhere\n    u8: Copy,\n{}", function("{", 66, ""));
    assert_eq!(rust(function_lengths, &wrapped), [1]);
}

#[test]
fn function_length_ignores_declarations_and_pointers() {
    let tail = "let x = 1;\n".repeat(200);
    for head in
        ["fn f(x: [u8; 2]);", "type F = fn(u8);", "fn f() {}", "fn f(g: fn()) { g() }", "let f = |x| { fn_of(x) };"]
    {
        assert_eq!(rust(function_lengths, &format!("{head}\n{tail}")), [0; 0], "{head}");
    }
}

#[test]
fn python_functions_are_measured_by_indent() {
    let body = |num_lines: usize| "        x = 1\n\n".repeat(num_lines / 2);
    let text = |num_lines| format!("class A:\n    def f(\n        self\n    ) -> int:\n{}    y = 2\n", body(num_lines));
    assert_eq!(plain(python_function_lengths, &text(66)), [0; 0]);
    assert_eq!(plain(python_function_lengths, &text(70)), [2]);
}

#[test]
fn a_crate_without_unsafe_code_forbids_it() {
    assert_eq!(rust(forbids_unsafe, "//! Doc.\n// #![forbid(unsafe_code)]\n#![deny(unsafe_code)]"), [1]);
    assert_eq!(rust(forbids_unsafe, "//! Doc.\n#![forbid(unsafe_code)]"), [0; 0]);
}

#[test]
fn unsafe_code_says_why_it_is_sound() {
    for good in [
        "// SAFETY: checked.\nunsafe { f() }",
        "// SAFETY: a long\n// reason.\nlet x =\n    unsafe { f() };",
        "unsafe { f() } // SAFETY: checked.",
        "// SAFETY: plain bytes.\n#[cfg(x)]\nunsafe impl Send for A {}",
        "/// Reads.\n///\n/// # Safety\n/// In bounds.\n#[inline]\n#[target_feature(enable = \"avx2\")]\npub unsafe fn f() {}",
        "// SAFETY: it passes on.\nunsafe impl Alloc for A {\n    unsafe fn f() {}\n\n    unsafe fn g() {}\n}",
        "let f: unsafe fn(u8) = g;",
        "#![deny(unsafe_op_in_unsafe_fn)]\n// unsafe { }\nlet s = \"unsafe { }\";",
    ] {
        assert_eq!(rust(safety_comments, good), [0; 0], "{good}");
    }
    for (bad, line) in [
        ("unsafe { f() }", 1),
        ("// SAFETY: another.\nunsafe { f() };\nunsafe { g() };", 3),
        ("// SAFETY: too far.\n\nunsafe { f() }", 3),
        ("// Fine.\nunsafe impl Send for A {}", 2),
        ("/// Reads.\npub unsafe fn f() {}", 2),
        ("impl A {\n    unsafe fn f() {}\n}", 2),
        ("/// # Safety\n/// In bounds.\nfn f() {\n    unsafe { g() }\n}", 4),
    ] {
        assert_eq!(rust(safety_comments, bad), [line], "{bad}");
    }
}

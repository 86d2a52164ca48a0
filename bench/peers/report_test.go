package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPageIsOfResults makes BENCHMARKS.md and its pictures again, and compares them with those in
// the tree.
func TestPageIsOfResults(t *testing.T) {
	const root = "../.."
	dir := t.TempDir()
	pictures := filepath.Join(dir, "docs", "benchmarks")
	if err := os.MkdirAll(pictures, 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{"-page", filepath.Join(dir, "BENCHMARKS.md"), "-pictures", pictures, "testdata/results.jsonl"}
	if err := writeReport(args, t.Output()); err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(pictures, "*.svg"))
	if err != nil || len(made) == 0 {
		t.Fatalf("%d pictures, %v", len(made), err)
	}
	for _, name := range append(made, filepath.Join(dir, "BENCHMARKS.md")) {
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(root, rel))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not of the results: cd bench/peers && go run . report testdata/results.jsonl", rel)
		}
	}
}

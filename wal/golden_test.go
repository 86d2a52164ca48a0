package wal

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files of the current version")

// goldenSteps makes all kinds of records, aligned and padded payloads, and an
// unproven tail.
var goldenSteps = []step{
	{n: 0}, {n: 1}, {sync: true}, {n: 8}, {n: 333}, {sync: true}, {seal: true}, {n: 64}, {sync: true}, {n: 7},
}

// TestGolden compares the bytes of a segment with the golden file of its version and
// replays that file. Golden files of released versions never change;
// go test ./wal -run Golden -update writes that of an unreleased version.
func TestGolden(t *testing.T) {
	const name = "testdata/segment-v1.wal"
	l := makeLog(t, testHeader(), goldenSteps)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, l.data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(golden, l.data); diff != "" {
		t.Errorf("the encoding of version %d changed (-golden +got):\n%s", version, diff)
	}
	r := replay(golden, testOptions())
	if r.err != nil {
		t.Fatal(r.err)
	}
	if diff := cmp.Diff(l.records, r.records); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	want := End{Offset: int64(len(golden)), Proven: l.synced, LastSeq: 108, Records: 6}
	if diff := cmp.Diff(want, r.end); diff != "" {
		t.Errorf("end (-want +got):\n%s", diff)
	}
}

package workload

import (
	"fmt"
	"testing"

	"github.com/tablerock-db/tablerock/vfs"
)

// TestSessionAgrees runs every profile without faults: the oracle must agree with the
// database after each step, or the other tests mean nothing.
func TestSessionAgrees(t *testing.T) {
	for _, p := range Profiles() {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("profile=%v/seed=%d", p, seed), func(t *testing.T) {
				s := New(Options{Seed: seed, Profile: p, NoSync: seed == 3})
				if err := s.Start(); err != nil {
					t.Fatal(err)
				}
				defer s.Abandon()
				for range 150 {
					if err := s.Step(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if err := s.Check(t.Context()); err != nil {
					t.Fatal(err)
				}
				t.Logf("%d commits, %d tables, %d operations of the file system", s.Head.Number, len(s.State.Tables()), s.FS.Ops())
			})
		}
	}
}

// TestSessionRepeats runs one seed twice and compares the disks, so that a seed repeats a
// violation.
func TestSessionRepeats(t *testing.T) {
	var dumps [2]string
	for i := range dumps {
		s := New(Options{Seed: 7})
		err := s.Start()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Abandon()
		for range 120 {
			if err := s.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if dumps[i], err = vfs.Dump(s.Disk, Dir); err != nil {
			t.Fatal(err)
		}
	}
	if dumps[0] != dumps[1] {
		t.Errorf("two runs of one seed left\n%s\nand\n%s", dumps[0], dumps[1])
	}
}

package storetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/store"
)

// heldMutants break rules about durability.
var heldMutants = []struct {
	name, subtest string
	change        func(s *syncedMap)
}{
	{"errors do not wait", "HeldRefusal", func(s *syncedMap) { s.early = true }},
	{"readers see writes that are not durable", "HeldWrite", func(s *syncedMap) { s.dirty = true }},
	{"another error than ErrOutcomeUnknown after a failed sync", "HeldFailure", func(s *syncedMap) { s.guesses = true }},
	{"acknowledged before it is durable", "HeldContext", func(s *syncedMap) { s.hasty = true }},
	{"Close does not wait", "HeldClose", func(s *syncedMap) { s.stuck = true }},
	{"HoldSync blocks a sync of the store's own", "HeldIdle", func(s *syncedMap) { s.idles = true }},
	{"ErrReadOnly for a call that waits for a failing sync", "HeldFailure", func(s *syncedMap) { s.locks = true }},
	{"ErrClosed for a call that began before Close", "HeldClose", func(s *syncedMap) { s.aborts = true }},
	{"a power cut loses acknowledged writes", "PowerCut", func(s *syncedMap) { s.loses = true }},
	{"a part of a batch after a failed sync", "HeldFailure", func(s *syncedMap) { s.torn = true }},
	{"an unknown outcome changes later", "HeldFailure", func(s *syncedMap) { s.wavers = true }},
	{"Timestamps begin anew when closed", "Reopen", func(s *syncedMap) { s.resets = true }},
}

func subtestOf(t *testing.T, name string) subtest {
	for _, p := range subtests() {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("the contract has no test %q", name)
	panic("unreachable")
}

// TestMutants checks that the suite finds each mutant, by the subtest for the rule
// that it breaks.
func TestMutants(t *testing.T) {
	for _, m := range slices.Concat(writeMutants, queryMutants) {
		t.Run(m.name, func(t *testing.T) {
			b := Backend{Open: func(testing.TB) store.Store {
				h := &hooks{mapStore: newMap(fixedClock)}
				m.make(h)
				return h
			}}
			wantFound(t, m.subtest, record(t, func(tb testing.TB) { subtestOf(t, m.subtest).run(newTester(tb, b)) }))
			if m.model {
				wantFound(t, "the model", record(t, func(tb testing.TB) {
					for seed := uint64(0); seed < 20 && !tb.Failed(); seed++ {
						RunModel(tb, b, seed, 400)
					}
				}))
			}
		})
	}
	for _, m := range heldMutants {
		t.Run(m.name, func(t *testing.T) {
			b := syncedBackend(m.change)
			wantFound(t, m.subtest, record(t, func(tb testing.TB) { subtestOf(t, m.subtest).run(newTester(tb, b)) }))
		})
	}
}

func wantFound(t *testing.T, by string, r *recorder) {
	t.Helper()
	if !r.failed || r.skipped {
		t.Errorf("%s does not find this mutant", by)
		return
	}
	text := strings.Join(r.text, "\n")
	t.Logf("%s: %.300s", by, text)
}

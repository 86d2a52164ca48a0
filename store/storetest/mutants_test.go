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
	{"Timestamps begin after the newest entity when opened", "Reopen PowerCut Kill", func(s *syncedMap) { s.forgets = true }},
	{"a kill loses acknowledged writes", "Kill", func(s *syncedMap) { s.loses = true }},
	{"a kill during writes loses acknowledged writes", "KillWhileBusy", func(s *syncedMap) { s.loses = true }},
	{"a kill leaves a part of a batch", "KillWhileBusy", func(s *syncedMap) { s.halves = true }},
	{"a write that a kill stores is refused", "KillWhileBusy", func(s *syncedMap) { s.denies = true }},
	{"Timestamps begin anew after a kill", "Kill", func(s *syncedMap) { s.resets = true }},
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

// backend returns a Backend of the mutant.
func (m *mutant) backend() Backend {
	return Backend{Open: func(testing.TB) store.Store {
		h := &hooks{mapStore: newMap(fixedClock)}
		m.make(h)
		return h
	}}
}

// findBy runs a subtest until it fails, or often. In one run, concurrent calls can meet in an
// order that hides the fault, or a call can begin later than the subtest waits for it.
func findBy(t *testing.T, name string, b Backend) (r *recorder) {
	concurrent := strings.HasPrefix(name, "Race") || strings.HasPrefix(name, "Held")
	for tries := 0; tries == 0 || concurrent && !r.failed && tries < 20; tries++ {
		r = record(t, func(tb testing.TB) { subtestOf(t, name).run(newTester(tb, b)) })
	}
	return r
}

// find runs the subtest of the mutant, and the model.
func (m *mutant) find(t *testing.T, b Backend) {
	for _, name := range strings.Fields(m.subtest) {
		wantFound(t, name, findBy(t, name, b))
	}
	if m.model {
		wantFound(t, "the model", record(t, func(tb testing.TB) {
			for seed := uint64(0); seed < 20 && !tb.Failed(); seed++ {
				RunModel(tb, b, seed, 400)
			}
		}))
	}
}

// TestMutants checks that the suite finds each mutant, by the subtest for the rule
// that it breaks, for a backend that promises no more than the contract, and for one that
// makes every promise.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of mutants, which the race detector need not see")
	}
	for _, m := range slices.Concat(writeMutants, queryMutants, filterMutants, columnMutants) {
		t.Run(m.name, func(t *testing.T) {
			b := m.backend()
			m.find(t, b)
			b.Snapshot, b.RisingTimestamps = true, true
			m.find(t, b)
		})
	}
	for _, m := range promiseMutants {
		t.Run(m.name, func(t *testing.T) {
			b := m.backend()
			for _, s := range append(subtests(), subtest{"Model", func(t *tester) { RunModel(t.TB, t.backend, 1, 400) }}) {
				if r := record(t, func(tb testing.TB) { s.run(newTester(tb, b)) }); r.failed {
					t.Errorf("the contract alone forbids it, says %s: %.300s", s.name, strings.Join(r.text, "\n"))
				}
			}
			b.Snapshot, b.RisingTimestamps = true, true
			m.find(t, b)
		})
	}
	for _, m := range heldMutants {
		t.Run(m.name, func(t *testing.T) {
			for _, name := range strings.Fields(m.subtest) {
				wantFound(t, name, findBy(t, name, syncedBackend(m.change)))
			}
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

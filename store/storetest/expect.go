package storetest

import (
	"errors"
	"fmt"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// noErr ends the test if err is not nil.
func (t *tester) noErr(what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// wantErr fails unless errors.Is finds want in err, which is nil for success.
func (t *tester) wantErr(what string, err, want error) {
	t.Helper()
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// wantRule fails unless err is an *edm.Error of rule r and not an *store.OpError.
func (t *tester) wantRule(what string, err error, r edm.Rule) {
	t.Helper()
	var op *store.OpError
	if got := ruleOf(err); got != r || errors.As(err, &op) {
		t.Errorf("%s: got %#v, want an *edm.Error of rule %v", what, err, r)
	}
}

// ruleOf returns the rule of an *edm.Error, or 0.
func ruleOf(err error) edm.Rule {
	var e *edm.Error
	if errors.As(err, &e) && errors.Is(err, store.ErrInvalid) {
		return e.Rule
	}
	return 0
}

// failure describes an *store.OpError: by an error or by a rule.
type failure struct {
	Index    int
	Executed bool
	Err      error
	Rule     edm.Rule
}

// String describes f.
func (f failure) String() string {
	what := fmt.Sprint(f.Err)
	if f.Rule != 0 {
		what = fmt.Sprintf("rule %q", f.Rule)
	}
	return fmt.Sprintf("op %d (executed %v): %s", f.Index, f.Executed, what)
}

// wantFailure fails unless err is the *store.OpError that f describes.
func (t *tester) wantFailure(what string, err error, f failure) {
	t.Helper()
	var op *store.OpError
	switch {
	case !errors.As(err, &op):
		t.Errorf("%s: got %v, want %v", what, err, f)
	case op.Index != f.Index || op.Executed != f.Executed || ruleOf(err) != f.Rule || f.Err != nil && !errors.Is(err, f.Err):
		t.Errorf("%s: got op %d (executed %v): %v; want %v", what, op.Index, op.Executed, op.Err, f)
	}
}

// sameEntity reports whether a and b are equal, including the order of properties.
func sameEntity(a, b edm.Entity) bool { return a.Key == b.Key && entityDifference(a, b) == "" }

// wantEntities fails unless got and want are the same entities in the same order.
func (t *tester) wantEntities(what string, got, want []edm.Entity) {
	t.Helper()
	if d := difference(got, want); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

// difference describes the first entity in which got and want differ, "" if they
// are the same.
func difference(got, want []edm.Entity) string {
	at := func(list []edm.Entity, i int) string {
		if i < len(list) {
			return show(list[i])
		}
		return "none"
	}
	for i := range max(len(got), len(want)) {
		count := fmt.Sprintf("%d entities, want %d; entity %d", len(got), len(want), i)
		if i >= len(got) || i >= len(want) || got[i].Key != want[i].Key {
			return fmt.Sprintf("%s is %s, want %s", count, at(got, i), at(want, i))
		}
		if d := entityDifference(got[i], want[i]); d != "" {
			return fmt.Sprintf("%s, %q, has %s", count, got[i].Key, d)
		}
	}
	return ""
}

// entityDifference describes the first difference of two entities with one key, ""
// if they are the same.
func entityDifference(got, want edm.Entity) string {
	if got.Timestamp != want.Timestamp {
		return fmt.Sprintf("Timestamp %d, want %d", got.Timestamp, want.Timestamp)
	}
	at := func(list edm.Properties, i int) string {
		if i < len(list) {
			return fmt.Sprintf("%q = %s", list[i].Name, show(list[i].Value))
		}
		return "none"
	}
	g, w := got.Properties, want.Properties
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i].Name != w[i].Name || !g[i].Value.Equal(w[i].Value) {
			return fmt.Sprintf("%d properties, want %d; property %d is %s, want %s", len(g), len(w), i, at(g, i), at(w, i))
		}
	}
	return ""
}

// show formats v for a message, shortened.
func show(v any) string {
	const most = 1500
	var text string
	switch v := v.(type) {
	case []edm.Entity:
		text = fmt.Sprintf("%d entities", len(v))
		for i := range v {
			text += " " + show(v[i])
			if len(text) > most {
				break
			}
		}
	case edm.Entity:
		text = fmt.Sprintf("{%q %d %#v}", v.Key, v.Timestamp, v.Properties)
	case store.Query:
		from, kind := "start", "forward"
		if v.From != nil {
			from = fmt.Sprintf("%q", *v.From)
		}
		if v.Reverse {
			kind = "reverse"
		}
		text = fmt.Sprintf("from %s %s limit %d budget %d bytes %d select %q filter %v", from, kind, v.Limit, v.Budget, v.BudgetBytes, v.Select, v.Filter)
	default:
		text = fmt.Sprintf("%#v", v)
	}
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

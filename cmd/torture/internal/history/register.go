package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// state is the state of a key: whether its table exists, and its value, 0 if it has none.
type state struct {
	table bool
	value int64
}

// step returns whether a key in state s can give the answer of an operation, and the state
// after it. An operation of unknown outcome has its effect if it can have one: it returns
// never, so an operation that did not happen follows all others.
func step(s state, o *Op) (bool, state) {
	switch o.Kind {
	case Create:
		return o.Answer == Unknown || s.table == (o.Answer == Exists), state{true, s.value}
	case Drop:
		return o.Answer == Unknown || s.table == (o.Answer == OK), state{}
	}
	allowed := OK
	switch {
	case !s.table:
		allowed = NoTable
	case o.Kind == Insert && s.value != 0:
		allowed = Exists
	case o.Kind != Insert && s.value == 0 && !o.upserts():
		allowed = NotFound
	case o.Conditional && s.value != o.Expected:
		allowed = Mismatch
	}
	if o.Kind == Get {
		return o.Answer == allowed && (allowed != OK || o.Value == s.value), s
	}
	if allowed == OK {
		return o.Answer == OK || o.Answer == Unknown, state{true, o.Value}
	}
	return o.Answer == allowed || o.Answer == Unknown, s
}

// upserts reports whether a Put inserts a value if there is none.
func (o *Op) upserts() bool { return o.Kind == Put && !o.Conditional }

// searchLimit is the longest time for the search of one order of a key's operations.
const searchLimit = 30 * time.Second

// linearizable searches an order of a key's operations. It first leaves out the writes of
// unknown outcome that no other operation knows of, because each of them doubles the search.
func linearizable(first state, ops []Op) porcupine.CheckResult {
	seen := map[int64]bool{}
	for _, o := range ops {
		if o.Answer != Unknown {
			seen[o.Value] = true
		}
		seen[o.Expected] = true
	}
	known := slices.DeleteFunc(slices.Clone(ops), func(o Op) bool { return o.Answer == Unknown && (o.Kind == Insert || o.Kind == Put) && !seen[o.Value] })
	result := search(first, known)
	if result != porcupine.Ok && len(known) < len(ops) {
		return search(first, ops)
	}
	return result
}

func search(first state, ops []Op) porcupine.CheckResult {
	model := porcupine.Model{
		Init: func() any { return first },
		Step: func(s, input, _ any) (bool, any) {
			ok, next := step(s.(state), input.(*Op))
			return ok, next
		},
		Equal: func(a, b any) bool { return a == b },
	}
	all := make([]porcupine.Operation, len(ops))
	for i := range ops {
		o := &ops[i]
		end := o.Return
		if o.Answer == Unknown {
			end = never
		}
		all[i] = porcupine.Operation{ClientId: o.Client, Input: o, Call: o.Call, Return: end}
	}
	return porcupine.CheckOperationsTimeout(model, all, searchLimit)
}

// checkKey checks the operations of a key. Operations that were refused must not have
// happened: their values must not be seen.
func (c *checker) checkKey(key string, all []Op) {
	refused := map[int64]bool{}
	for _, o := range all {
		if o.Answer == Refused {
			refused[o.Value] = o.Value != 0
		}
	}
	ops := slices.DeleteFunc(slices.Clone(all), func(o Op) bool { return o.Answer == Refused })
	for _, o := range ops {
		if o.Kind == Get && refused[o.Value] {
			c.violate("key %s: a write was refused, and it happened:\n  %s", key, o)
		}
	}
	slices.SortStableFunc(ops, func(a, b Op) int { return cmp.Compare(a.Call, b.Call) })
	c.checkETags(key, ops)
	stale := c.checkTimes(key, ops)
	first := state{table: true}
	switch linearizable(first, ops) {
	case porcupine.Ok:
		return
	case porcupine.Unknown:
		c.violate("key %s: no order of its %d operations found within %v", key, len(ops), searchLimit)
		return
	}
	strict := slices.DeleteFunc(slices.Clone(ops), func(o Op) bool { return o.Kind == Get && c.excuse(o.Server, o.Call, o.Return) })
	if len(strict) < len(ops) && linearizable(first, strict) == porcupine.Ok {
		c.report.StaleReads += len(stale)
		for _, s := range stale {
			c.report.StaleTime = max(c.report.StaleTime, s.age)
		}
		return
	}
	for _, s := range stale {
		if !c.excuse(s.op.Server, s.op.Call, s.op.Return) {
			c.violate("key %s: a read is stale by %v:\n  %s", key, s.age, s.op)
			return
		}
	}
	c.violate("key %s: its %d operations are not linearizable%s", key, len(ops), c.shortest(first, ops))
}

// shortest returns the end of the shortest prefix of operations, by their returns, that is
// not linearizable. All operations that have begun are in the prefix.
func (c *checker) shortest(first state, ops []Op) string {
	returns := slices.SortedFunc(slices.Values(ops), func(a, b Op) int { return cmp.Compare(a.Return, b.Return) })
	until := func(end int64) (prefix []Op) {
		for _, o := range ops {
			if o.Call <= end {
				if o.Return > end {
					if o.Kind == Get {
						continue
					}
					o.Answer = Unknown
				}
				prefix = append(prefix, o)
			}
		}
		return prefix
	}
	n, _ := slices.BinarySearchFunc(returns, true, func(o Op, _ bool) int {
		if linearizable(first, until(o.Return)) == porcupine.Ok {
			return -1
		}
		return 1
	})
	if n == len(returns) {
		return ""
	}
	text := "; the first contradiction ends with\n  " + returns[n].String() + "\nafter"
	prefix := until(returns[n].Return)
	for _, o := range prefix[max(0, len(prefix)-12):] {
		text += "\n  " + o.String()
	}
	return text
}

// checkETags checks that each ETag of a key is that of one value, and the reverse.
func (c *checker) checkETags(key string, ops []Op) {
	values, etags := map[string]Op{}, map[int64]Op{}
	for _, o := range ops {
		if o.ETag == "" {
			continue
		}
		if before, ok := values[o.ETag]; ok && before.Value != o.Value {
			c.violate("key %s: an ETag came twice:\n  %s\n  %s", key, before, o)
			return
		}
		if before, ok := etags[o.Value]; ok && before.ETag != o.ETag {
			c.violate("key %s: a value has two ETags:\n  %s\n  %s", key, before, o)
			return
		}
		values[o.ETag], etags[o.Value] = o, o
	}
}

// staleRead is a read of an older value than that of an operation that had returned before
// it. The first such operation returned age before the read did.
type staleRead struct {
	op  Op
	age time.Duration
}

// checkTimes checks that no write got a Timestamp that is not above that of each operation
// that had returned before, and returns the reads with such a Timestamp. ops are sorted by
// their calls.
func (c *checker) checkTimes(key string, ops []Op) (stale []staleRead) {
	returns := slices.SortedFunc(slices.Values(ops), func(a, b Op) int { return cmp.Compare(a.Return, b.Return) })
	var newest Op // the operation with the highest Timestamp that had returned
	violated := false
	for _, o := range ops {
		for len(returns) > 0 && returns[0].Return < o.Call {
			if r := returns[0]; r.Time > newest.Time && r.Answer == OK {
				newest = r
			}
			returns = returns[1:]
		}
		switch {
		case o.Time == 0 || o.Answer != OK || o.Value == newest.Value || o.Time > newest.Time:
		case o.Kind == Get:
			stale = append(stale, staleRead{o, age(o, ops)})
		case !violated:
			violated = true
			c.violate("key %s: a Timestamp went back:\n  %s\n  %s", key, newest, o)
		}
	}
	return stale
}

// age returns the time from the first return of a newer value than that of a read to the
// return of the read.
func age(read Op, ops []Op) (longest time.Duration) {
	for _, o := range ops {
		if o.Answer == OK && o.Time > read.Time {
			longest = max(longest, time.Duration(read.Return-o.Return))
		}
	}
	return longest
}

// checkKeys checks the operations of all keys.
func (c *checker) checkKeys(keys map[string][]Op) {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		c.checkKey(key, keys[key])
		c.report.Ops += len(keys[key])
	}
}

func (c *checker) violate(format string, args ...any) {
	c.report.Violations = append(c.report.Violations, fmt.Sprintf(format, args...))
}

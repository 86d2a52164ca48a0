package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/bench"
)

// engines are the stores that this program measures. Build tags add more.
var engines = []bench.Store{
	bench.Tablerock{}, bench.Tablerock{Small: true}, pebbleStore{}, badgerStore{}, levelStore{}, boltStore{},
}

// engineNames returns the names of all engines but Tablerock's second profile, which
// reports show only if it is named.
func engineNames() []string {
	var names []string
	for _, e := range engines {
		if name := e.Name(); name != (bench.Tablerock{Small: true}).Name() {
			names = append(names, name)
		}
	}
	return names
}

// enginesOf returns the engines of a list of names.
func enginesOf(names string) ([]bench.Store, error) {
	var out []bench.Store
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(engines, func(s bench.Store) bool { return s.Name() == name })
		if i < 0 {
			return nil, fmt.Errorf("engine %q is not known or not built in; rocksdb and lmdb need the build tags of their names", name)
		}
		out = append(out, engines[i])
	}
	return out, nil
}

package main

import (
	"fmt"
	"strings"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/filter"
)

// parseFilter parses the value of a flag as a filter. It returns nil for no value.
func parseFilter(flag, value string) (*filter.Expr, error) {
	e, err := filter.Parse(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, hint.Filter(value, err))
	}
	return e, nil
}

// splitList splits the names in the value of a flag at commas. It returns nil for no value.
func splitList(flag, value string) ([]string, error) {
	if value == "" {
		return nil, nil
	}
	list := strings.Split(value, ",")
	for i, name := range list {
		if list[i] = strings.TrimSpace(name); list[i] == "" {
			return nil, usagef("%s %q: name %d is empty; write names separated by commas", flag, value, i+1)
		}
	}
	return list, nil
}

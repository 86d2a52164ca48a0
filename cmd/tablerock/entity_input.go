package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
)

// maxEntityJSON limits the JSON of one entity, far above the size that can be stored.
const maxEntityJSON = 16 << 20

// readEntityJSON reads all of r, which is standard input, as the JSON of an entity.
func readEntityJSON(ctx context.Context, r io.Reader) (edm.Entity, error) {
	src, err := io.ReadAll(io.LimitReader(r, maxEntityJSON+1))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return edm.Entity{}, fmt.Errorf("read the entity from standard input: %w", err)
	}
	if len(src) > maxEntityJSON {
		return edm.Entity{}, fmt.Errorf("the JSON of an entity has at most %d bytes; use \"tablerock import\" for several entities: %w",
			maxEntityJSON, edm.ErrTooLarge)
	}
	return parseEntity(src)
}

// parseEntity parses the JSON of an entity and checks it against the rules of the data
// model.
func parseEntity(src []byte) (edm.Entity, error) {
	e, err := odata.ParseEntity(src, odata.ParseOptions{Exact: true})
	if err != nil {
		return e, fmt.Errorf("the entity's JSON: %w", err)
	}
	return e, edm.CheckEntity(&e)
}

// selectProperties returns the properties whose names are in list, in its order, or all if
// it is empty.
func selectProperties(props edm.Properties, list []string) edm.Properties {
	if len(list) == 0 {
		return props
	}
	var kept edm.Properties
	for i, name := range list {
		if v, ok := props.Lookup(name); ok && !slices.Contains(list[:i], name) {
			kept = append(kept, edm.Property{Name: name, Value: v})
		}
	}
	return kept
}

package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/where"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

func init() { commands = append(commands, newEntity) }

func newEntity(a *app) *cobra.Command {
	entity := group("entity", "Read and write entities")
	entity.Long = entity.Short + "." + where.Help
	a.where.Add(entity.PersistentFlags())
	entity.AddCommand(
		newEntityGet(a), newEntityDelete(a), newEntityInsert(a), newEntityUpsert(a),
		newEntityUpdate(a, "merge", "Set the given properties of an entity that exists", store.Merge),
		newEntityUpdate(a, "replace", "Replace all properties of an entity that exists", store.Replace),
		newEntityQuery(a),
	)
	return entity
}

// entityHelp describes the entity argument of the commands that write.
const entityHelp = `

The entity is one JSON object, read from the argument or, if that is missing or "-",
from standard input:

  {"PartitionKey": "eu", "RowKey": "0001", "Total": 42.5, "Paid": true,
   "Count@odata.type": "Edm.Int64", "Count": "9000000000"}`

// readEntity reads the entity from the argument after the table or from standard input.
func (a *app) readEntity(ctx context.Context, args []string) (edm.Entity, error) {
	if len(args) > 1 && args[1] != "-" {
		return parseEntity([]byte(args[1]))
	}
	return readEntityJSON(ctx, interruptible(ctx, a.stdin))
}

// apply runs one operation and prints its result.
func (a *app) apply(ctx context.Context, table string, op store.Op) error {
	var result store.Result
	err := a.createStore(engine.Options{SegmentBytes: smallLog}, func(s store.Store) error {
		results, err := s.Apply(ctx, table, op)
		if err == nil {
			result = results[0]
		}
		return err
	})
	if err != nil {
		return a.ofEntity(table, op.Entity.Key, err)
	}
	return a.printWritten(op.Entity.Key, result)
}

func ifMatchFlag(cmd *cobra.Command, etag *string) {
	cmd.Flags().StringVar(etag, "if-match", string(store.Any), "only if the entity has this `ETag`; * is any")
}

// checkIfMatch returns an error for an ETag that no entity can have.
func checkIfMatch(etag string) error {
	if text := hint.ETag(etag); text != "" {
		return usagef("--if-match %q: %s", etag, text)
	}
	return nil
}

func selectFlag(cmd *cobra.Command, selected *string) {
	cmd.Flags().StringVar(selected, "select", "", "print only the keys and these properties, `names` separated by commas")
}

// printWritten prints the key, Timestamp and ETag of an entity that was written.
func (a *app) printWritten(key edm.Key, r store.Result) error {
	return a.printer().Record(output.Record{
		{edm.PartitionKeyName, key.Partition},
		{edm.RowKeyName, key.Row},
		{edm.TimestampName, r.Timestamp.String()},
		{"odata.etag", string(r.ETag)},
	})
}

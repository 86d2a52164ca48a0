package storetest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// mutant breaks one rule. Each of the subtests, whose names have spaces between them, must
// find it, and with model RunModel too.
type mutant struct {
	name    string
	subtest string
	model   bool
	make    func(h *hooks)
}

// writeMutants break rules about writes, tables and Close.
var writeMutants = []mutant{
	{"partition before other checks", "OrderOfChecks", true, func(h *hooks) {
		h.apply = func(ctx context.Context, table string, ops []store.Op) ([]store.Result, error) {
			for i := range ops {
				if ops[i].Entity.Key.Partition != ops[0].Entity.Key.Partition {
					return nil, &store.OpError{Index: i, Err: &edm.Error{Rule: edm.RuleBatchPartition}}
				}
			}
			return h.mapStore.Apply(ctx, table, ops...)
		}
	}},
	{"table before the ops", "OrderOfChecks", false, func(h *hooks) {
		h.apply = func(ctx context.Context, table string, ops []store.Op) ([]store.Result, error) {
			if _, err := h.TableMeta(ctx, table); err == store.ErrTableNotFound {
				return nil, &store.OpError{Err: err}
			}
			return h.mapStore.Apply(ctx, table, ops...)
		}
	}},
	{"result before the ETag", "OrderOfChecks", false, func(h *hooks) {
		h.apply = func(ctx context.Context, table string, ops []store.Op) ([]store.Result, error) {
			r, err := h.mapStore.Apply(ctx, table, ops...)
			if errors.Is(err, store.ErrPrecondition) {
				var e *store.OpError
				errors.As(err, &e)
				if late := edm.CheckTotals(ops[e.Index].Entity.Key, ops[e.Index].Entity.Properties); late != nil {
					e.Err = late
				}
			}
			return r, err
		}
	}},
	{"first occurrence of a duplicate", "BatchIndex", true, func(h *hooks) {
		opErrors(h, func(ops []store.Op, e *store.OpError) {
			if ruleOf(e) == edm.RuleBatchDuplicate {
				e.Index = slices.IndexFunc(ops, func(op store.Op) bool { return op.Entity.Key == ops[e.Index].Entity.Key })
			}
		})
	}},
	{"too many ops reports op 100", "BatchCount", true, func(h *hooks) {
		opErrors(h, func(_ []store.Op, e *store.OpError) {
			if e.Index == 99 {
				e.Index = 100
			}
		})
	}},
	{"Executed is never set", "Conditions", true, func(h *hooks) {
		opErrors(h, func(_ []store.Op, e *store.OpError) { e.Executed = false })
	}},
	{"a missing table sets Executed", "MissingTable", true, func(h *hooks) {
		opErrors(h, func(_ []store.Op, e *store.OpError) { e.Executed = true })
	}},
	{"ETags are ignored", "Conditions", true, func(h *hooks) {
		eachOp(h, func(op *store.Op) { op.IfMatch = store.Any })
	}},
	{"upserts check the ETag", "Conditions", false, func(h *hooks) {
		eachOp(h, func(op *store.Op) {
			if op.Kind == store.OpInsertOrMerge && op.IfMatch == "wrong" {
				op.Kind = store.OpMerge
			}
		})
	}},
	{"merges replace", "Merge", true, func(h *hooks) {
		eachOp(h, func(op *store.Op) {
			if op.Kind == store.OpMerge {
				op.Kind = store.OpReplace
			}
		})
	}},
	{"replaces merge", "Replace", true, func(h *hooks) {
		eachOp(h, func(op *store.Op) {
			if op.Kind == store.OpInsertOrReplace {
				op.Kind = store.OpInsertOrMerge
			}
		})
	}},
	{"an insert sorts its properties", "PropertyNames", true, func(h *hooks) {
		eachOp(h, func(op *store.Op) {
			if op.Kind == store.OpInsert {
				op.Entity.Properties = byName(op.Entity.Properties)
			}
		})
	}},
	{"a replace keeps the order of its properties", "PropertyOrder", true, func(h *hooks) {
		eachStored(h, func(op *store.Op, e *edm.Entity) {
			if op.Kind == store.OpReplace || op.Kind == store.OpInsertOrReplace {
				e.Properties = slices.DeleteFunc(slices.Clone(op.Entity.Properties), func(p edm.Property) bool { return p.Value.IsNull() })
			}
		})
	}},
	{"properties are in the order of their bytes", "PropertyOrder", true, func(h *hooks) {
		eachStored(h, func(op *store.Op, e *edm.Entity) {
			if op.Kind != store.OpInsert {
				slices.SortFunc(e.Properties, func(a, b edm.Property) int { return strings.Compare(a.Name, b.Name) })
			}
		})
	}},
	{"null is stored as the empty string", "Nulls", true, func(h *hooks) {
		eachOp(h, func(op *store.Op) {
			for i := range op.Entity.Properties {
				if p := &op.Entity.Properties[i]; p.Value.IsNull() {
					p.Value = edm.String("")
				}
			}
		})
	}},
	{"minus zero becomes zero", "Values", true, func(h *hooks) {
		eachOp(h, func(op *store.Op) {
			for i := range op.Entity.Properties {
				if p := &op.Entity.Properties[i]; p.Value.Equal(edm.Double(math.Copysign(0, -1))) {
					p.Value = edm.Double(0)
				}
			}
		})
	}},
	{"the bits of NaN change", "Values", false, func(h *hooks) {
		eachOp(h, func(op *store.Op) {
			for i := range op.Entity.Properties {
				p := &op.Entity.Properties[i]
				if f, ok := p.Value.Double(); ok && math.IsNaN(f) {
					p.Value = edm.Double(math.NaN())
				}
			}
		})
	}},
	{"an empty Binary becomes a String", "Values", true, func(h *hooks) {
		eachOp(h, func(op *store.Op) {
			for i := range op.Entity.Properties {
				if p := &op.Entity.Properties[i]; p.Value.Type() == edm.TypeBinary && len(p.Value.Bytes()) == 0 {
					p.Value = edm.String("")
				}
			}
		})
	}},
	{"the caller's nulls are removed in place", "Ownership", false, func(h *hooks) {
		h.apply = func(ctx context.Context, table string, ops []store.Op) ([]store.Result, error) {
			for i := range ops {
				p := ops[i].Entity.Properties
				if len(p) > 2 && p[2].Value.IsNull() {
					p[2], p[3] = p[3], p[2]
				}
			}
			return h.mapStore.Apply(ctx, table, ops...)
		}
	}},
	{"the caller's memory is retained", "Ownership", false, func(h *hooks) {
		eachResult(h, func(table string, ops []store.Op, r []store.Result, err error) ([]store.Result, error) {
			if t := h.tables[edm.FoldTableName(table)]; err == nil && t != nil {
				for i := range ops {
					e := t.rows[ops[i].Entity.Key]
					for j := 0; e != nil && j < len(e.Properties); j++ {
						if v := ops[i].Entity.Properties.Get(e.Properties[j].Name); v.Equal(e.Properties[j].Value) {
							e.Properties[j].Value = v
						}
					}
				}
			}
			return r, err
		})
	}},
	{"Get gives the store's memory", "Ownership", false, func(h *hooks) {
		h.get = func(ctx context.Context, table string, key edm.Key) (e edm.Entity, err error) {
			err = h.View(ctx, table, key, func(r edm.Row) error {
				e = edm.EntityOf(r)
				for i := range e.Properties {
					_, e.Properties[i].Value = r.At(i)
				}
				return nil
			})
			return e, err
		}
	}},
	{"the first ops of a failed batch stay", "BatchAtomic", true, func(h *hooks) {
		eachResult(h, func(table string, ops []store.Op, r []store.Result, err error) ([]store.Result, error) {
			var e *store.OpError
			if errors.As(err, &e) && e.Executed && e.Index > 0 {
				_, _ = h.mapStore.Apply(context.Background(), table, ops[:e.Index]...)
			}
			return r, err
		})
	}},
	{"results with an error", "BatchIndex", true, func(h *hooks) {
		eachResult(h, func(_ string, ops []store.Op, r []store.Result, err error) ([]store.Result, error) {
			if err != nil {
				r = make([]store.Result, len(ops))
			}
			return r, err
		})
	}},
	{"a deletion has a Result", "Timestamps", true, func(h *hooks) {
		eachResult(h, func(_ string, ops []store.Op, r []store.Result, err error) ([]store.Result, error) {
			for i := range r {
				if ops[i].Kind == store.OpDelete {
					r[i].ETag = "gone"
				}
			}
			return r, err
		})
	}},
	{"Timestamps stand still", "Timestamps", true, func(h *hooks) {
		// Move every second Timestamp back.
		n := 0
		eachResult(h, func(_ string, _ []store.Op, r []store.Result, err error) ([]store.Result, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if n++; err == nil && n%2 == 0 {
				h.last -= edm.Ticks(len(r))
			}
			return r, err
		})
	}},
	{"table names are case-sensitive", "TableNamesFold", true, func(h *hooks) {
		h.createTable = func(ctx context.Context, table string) error {
			if table == strings.ToLower(table) {
				return h.mapStore.CreateTable(ctx, table)
			}
			return h.mapStore.CreateTable(ctx, table+"X")
		}
	}},
	{"tables are listed folded", "CreateTable", true, func(h *hooks) {
		h.list = func(ctx context.Context, from string, limit int) ([]store.TableInfo, error) {
			list, err := h.mapStore.Tables(ctx, from, limit)
			for i := range list {
				list[i].Name = strings.ToLower(list[i].Name)
			}
			return list, err
		}
	}},
	{"tables are listed after from", "ListTables DeleteTable", true, func(h *hooks) {
		h.list = func(ctx context.Context, from string, limit int) ([]store.TableInfo, error) {
			return h.mapStore.Tables(ctx, from+"\x00", limit)
		}
	}},
	{"a table keeps its rows", "DeleteTable", true, func(h *hooks) {
		kept := map[string]*mapTable{}
		h.deleteTable = func(ctx context.Context, table string) error {
			if t := h.tables[edm.FoldTableName(table)]; t != nil {
				kept[edm.FoldTableName(table)] = t
			}
			return h.mapStore.DeleteTable(ctx, table)
		}
		h.createTable = func(ctx context.Context, table string) error {
			err := h.mapStore.CreateTable(ctx, table)
			if old := kept[edm.FoldTableName(table)]; err == nil && old != nil {
				h.tables[edm.FoldTableName(table)].rows = old.rows
			}
			return err
		}
	}},
	{"a table keeps its metadata", "DeleteTable", true, func(h *hooks) {
		kept := map[string][]byte{}
		h.deleteTable = func(ctx context.Context, table string) error {
			if meta, err := h.TableMeta(ctx, table); err == nil {
				kept[edm.FoldTableName(table)] = meta
			}
			return h.mapStore.DeleteTable(ctx, table)
		}
		h.createTable = func(ctx context.Context, table string) error {
			err := h.mapStore.CreateTable(ctx, table)
			if err == nil {
				_ = h.SetTableMeta(ctx, table, kept[edm.FoldTableName(table)])
			}
			return err
		}
	}},
	{"metadata is the caller's slice", "TableMeta", false, func(h *hooks) {
		h.setMeta = func(ctx context.Context, table string, meta []byte) error {
			err := h.mapStore.SetTableMeta(ctx, table, meta)
			if err == nil && len(meta) > 0 {
				h.tables[edm.FoldTableName(table)].meta = meta
			}
			return err
		}
	}},
	{"metadata is cut", "TableMeta", true, func(h *hooks) {
		h.setMeta = func(ctx context.Context, table string, meta []byte) error {
			return h.mapStore.SetTableMeta(ctx, table, bytes.TrimRight(meta[:min(len(meta), maxMetaBytes)], "\x00"))
		}
	}},
	{"DeleteTable ignores ctx", "QueryContext", false, func(h *hooks) {
		h.deleteTable = func(_ context.Context, table string) error {
			return h.mapStore.DeleteTable(context.Background(), table)
		}
	}},
	{"SetTableMeta ignores ctx", "QueryContext", false, func(h *hooks) {
		h.setMeta = func(_ context.Context, table string, meta []byte) error {
			return h.mapStore.SetTableMeta(context.Background(), table, meta)
		}
	}},
	{"View calls read twice", "Conditions", false, func(h *hooks) {
		h.view = func(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error {
			return errors.Join(h.mapStore.View(ctx, table, key, read), h.mapStore.View(ctx, table, key, read))
		}
	}},
	{"a second Close fails", "Close", false, func(h *hooks) {
		n := 0
		h.close = func() error {
			if n++; n == 2 {
				return store.ErrClosed
			}
			return h.mapStore.Close()
		}
	}},
	{"Ping always succeeds", "Ping", false, func(h *hooks) { h.ping = func(context.Context) error { return nil } }},
	{"Ping fails after its ctx ended once", "Ping", false, func(h *hooks) {
		var ended error
		h.ping = func(ctx context.Context) error {
			if ended == nil {
				ended = ctx.Err()
			}
			return ended
		}
	}},
	{"Close does nothing", "Close CloseWhileBusy", false, func(h *hooks) { h.close = func() error { return nil } }},
	{"two inserts win", "RaceInsert", false, func(h *hooks) {
		var mu sync.Mutex
		first := true
		eachResult(h, func(_ string, ops []store.Op, r []store.Result, err error) ([]store.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, store.ErrEntityExists) && first {
				first = false
				return make([]store.Result, len(ops)), nil
			}
			return r, err
		})
	}},
	{"batches are applied op by op", "RaceWholeBatches", false, func(h *hooks) {
		h.apply = func(ctx context.Context, table string, ops []store.Op) ([]store.Result, error) {
			var all []store.Result
			for _, op := range ops {
				r, err := h.mapStore.Apply(ctx, table, op)
				if err != nil {
					return nil, err
				}
				all = append(all, r...)
				runtime.Gosched()
			}
			return all, nil
		}
	}},
}

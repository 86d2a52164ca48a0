package explorer

import (
	"context"
	"net/http"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/store"
)

// actions are the names of AccountInfo.Can.
var actions = map[string]sharedkey.Action{
	"list": sharedkey.ListTables, "create": sharedkey.CreateTable, "drop": sharedkey.DeleteTable, "read": sharedkey.Query,
	"insert": sharedkey.Insert, "update": sharedkey.Update, "upsert": sharedkey.Upsert, "delete": sharedkey.DeleteEntity, "acl": sharedkey.ACL,
}

// statsTime limits the time that figures of tables take. Without them the lists are shown.
const statsTime = 5 * time.Second

func (x *exchange) accounts() (any, error) {
	list := []AccountInfo{}
	for _, a := range x.h.o.Accounts() {
		if x.s.Account == "" || x.s.Account == a.Name {
			list = append(list, x.describeAccount(&a))
		}
	}
	return map[string]any{"accounts": list}, nil
}

func (x *exchange) describeAccount(a *Account) AccountInfo {
	d := AccountInfo{
		Name: a.Name, Where: a.Where, Engine: a.Engine != nil && x.s.Table == "", Explains: a.Engine != nil, ReadOnly: a.ReadOnly,
		ACL: a.Policies != nil && x.allow(sharedkey.ACL, "") == nil, SAS: a.Credential != nil && x.s.SAS == "", Can: map[string]bool{}, Exact: true,
	}
	for name, action := range actions {
		d.Can[name] = x.allow(action, x.s.Table) == nil
	}
	if x.s.SAS != "" {
		d.Where = "" // the holder of a signature need not know directories of the server
	}
	list, totals, err := x.tableInfos(a)
	if err != nil {
		_, d.Failure = x.h.failureOf(err)
	}
	d.Tables, d.Totals = len(list), totals
	for _, t := range list {
		d.Entities += t.Entities
		d.Bytes += t.Bytes
		d.Exact = d.Exact && t.Exact
	}
	return d
}

func (x *exchange) tables() (any, error) {
	a, err := x.account(x.r.URL.Query().Get("a"))
	if err != nil {
		return nil, err
	}
	list, totals, err := x.tableInfos(a)
	return map[string]any{"tables": list, "totals": totals}, err
}

// tableInfos returns the tables of an account that the session may see, and whether their
// figures are known. A signature for one table sees that one.
func (x *exchange) tableInfos(a *Account) (infos []TableInfo, totals bool, err error) {
	from, limit := "", 0
	if x.s.Table != "" {
		from, limit = x.s.Table, 1
	} else if err := x.allow(sharedkey.ListTables, ""); err != nil {
		return nil, false, err
	}
	list, err := a.Store.Tables(x.r.Context(), from, limit)
	if err != nil {
		return nil, false, err
	}
	stats := map[string]store.TableStats{}
	if a.Stats != nil && x.s.SAS == "" {
		ctx, cancel := context.WithTimeout(x.r.Context(), statsTime)
		defer cancel()
		if all, err := a.Stats(ctx); err == nil {
			totals = true
			for _, one := range all {
				stats[one.Name] = one
			}
		}
	}
	infos = []TableInfo{}
	for _, t := range list {
		if limit > 0 && edm.FoldTableName(t.Name) != edm.FoldTableName(from) {
			break
		}
		s := stats[t.Name]
		info := TableInfo{Name: t.Name, Entities: s.Entities, Exact: s.Exact, Bytes: s.Bytes}
		if t.Created != 0 {
			info.Created = t.Created.String()
		}
		infos = append(infos, info)
	}
	return infos, totals, nil
}

// tableRequest names a table. Typed repeats the name, for what cannot be undone.
type tableRequest struct{ Account, Table, Typed string }

func (x *exchange) tableOf(action sharedkey.Action) (*Account, *tableRequest, error) {
	var in tableRequest
	if err := x.read(&in); err != nil {
		return nil, nil, err
	}
	a, _, err := x.targetOf(in.Account, in.Table, action)
	return a, &in, err
}

func (x *exchange) createTable() (any, error) {
	a, in, err := x.tableOf(sharedkey.CreateTable)
	if err != nil {
		return nil, err
	}
	return struct{}{}, a.Store.CreateTable(x.r.Context(), in.Table)
}

func (x *exchange) deleteTable() (any, error) {
	a, in, err := x.tableOf(sharedkey.DeleteTable)
	if err == nil {
		err = in.confirmed()
	}
	if err != nil {
		return nil, err
	}
	return struct{}{}, a.Store.DeleteTable(x.r.Context(), in.Table)
}

func (in *tableRequest) confirmed() error {
	if in.Typed != in.Table {
		return Refuse(http.StatusBadRequest, "NotConfirmed", "Type the name of the table to confirm.")
	}
	return nil
}

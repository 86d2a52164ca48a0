package sharedkey

import "testing"

func TestTableSASGrantsItsTable(t *testing.T) {
	v := verifier(t)
	q, err := credential(t, key1).TableSAS(TableSAS{Table: "People", Permissions: "r", Expiry: "2026-03-05"})
	if err != nil {
		t.Fatal(err)
	}
	g, err := verify(v, request("GET", "/devstoreaccount1/People()", q))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Allow(Query, "people"); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, g.Allow(Insert, "People"), refusedPermission)
	wantRefusal(t, g.Allow(Query, "Other"), refusedOperation)
}

// Package queries is what the contract of package store says of queries, as tests:
// what they find, in which order, on which pages, and of which moment.
package queries

import "github.com/tablerock-db/tablerock/store/storetest/internal/suite"

// Parts returns one Part for each part of the contract.
func Parts() []suite.Part {
	return []suite.Part{
		{Name: "QueryOrder", Run: testQueryOrder},
		{Name: "QueryFrom", Run: testQueryFrom},
		{Name: "QueryFromLimits", Run: testQueryFromLimits},
		{Name: "QueryFromNoKey", Run: testQueryFromNoKey},
		{Name: "QueryFilter", Run: testQueryFilter},
		{Name: "QueryKeys", Run: testQueryKeys},
		{Name: "QuerySelect", Run: testQuerySelect},
		{Name: "QuerySnapshot", Run: testQuerySnapshot},
		{Name: "QueryDeletedTable", Run: testQueryDeletedTable},
		{Name: "QueryContext", Run: testQueryContext},
		{Name: "QueryRow", Run: testQueryRow},
		{Name: "QueryEntities", Run: testQueryEntities},
		{Name: "Pages", Run: testPages},
		{Name: "PagesOfBudget", Run: testPagesOfBudget},
		{Name: "PageEnds", Run: testPageEnds},
		{Name: "PagesWhileWriting", Run: testPagesWhileWriting},
	}
}

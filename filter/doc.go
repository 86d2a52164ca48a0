// Package filter implements $filter, the query language of the Table service.
//
// [Parse] converts text to an [Expr]. Text is not the only way to make one: [Keys]
// selects a range of keys and [And] combines filters.
//
// A backend executes an Expr in two steps: it reads the key ranges of
// [Expr.Ranges], and keeps the rows for which [Expr.Match] returns true.
//
// A comparison is true only if the row has the property. Numbers of different
// types are compared by value; any other values of different types are unequal.
package filter

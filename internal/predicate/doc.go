// Package predicate implements typed comparisons of an entity's properties with
// constants, and the boolean programs made of them. It does not depend on the text
// of a filter, nor on where rows are stored. A Program matches one row at a time, or
// selects from many rows whose values are in columns; it also decides from the bounds of
// columns whether any row can match, without a row.
//
// The logic is two-valued. A comparison with a property that a row does not have is
// false, whatever the operator, so that its negation is true. Int32, Int64 and
// Double are compared with each other by their exact mathematical values. A value of
// another type than the constant matches only Ne. Strings are ordered by UTF-16 code
// unit, Guids by the bytes of their text form, Binaries by bytes, false before true.
// NaN, on either side, matches only Ne.
package predicate

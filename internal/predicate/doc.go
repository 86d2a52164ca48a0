// Package predicate is typed comparisons of an entity's properties with
// constants, and the boolean programs made of them. It knows nothing of the
// text they came from, and nothing of where rows are stored: a Program is run
// on one row at a time, its Terms can be tested against whole columns, and it
// can be judged from summaries of columns without any row.
//
// The logic is two-valued. A comparison with a property that a row lacks is
// false, whatever the operator, so that its negation is true. Int32, Int64 and
// Double are compared with each other by their exact mathematical values. A
// value of any other type than the constant's matches Ne and nothing else.
// Strings are ordered by UTF-16 code unit, Guids by the bytes of their text
// form, Binaries by bytes, false before true. NaN matches Ne and nothing else,
// on either side.
package predicate

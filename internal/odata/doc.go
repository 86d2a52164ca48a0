// Package odata encodes and decodes entities, tables and errors as the Table
// service's JSON.
//
// The JSON of an entity is a flat object. A member "Name@odata.type" gives the type
// of the property Name where the JSON value alone does not show it.
//
// The package checks JSON syntax and the text of each value. It does not check the
// rules of the data model for names, lengths and counts; the store checks these.
package odata

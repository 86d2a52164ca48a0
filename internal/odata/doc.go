// Package odata writes and reads entities, tables and failures as the Table
// service's JSON: flat objects, in which a member "Name@odata.type" names the
// type of the property Name where the JSON value alone does not tell it.
//
// Nothing here checks the rules of the data model beyond what JSON itself
// demands: names, lengths and counts are looked at by the store that takes the
// entity.
package odata

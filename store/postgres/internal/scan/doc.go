// Package scan executes the queries of store/postgres: it reads chunks of rows in the order of
// the keys, from the tables of entities with short and with long keys.
package scan

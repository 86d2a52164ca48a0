package store

import "github.com/tablerock-db/tablerock/edm"

// ColumnCursor is an optional interface of a Cursor, which can return many rows at once, by
// columns. This loop reads each row once:
//
//	for {
//		if rows := c.NextColumns(); rows != nil {
//			// read rows
//		} else if c.Next() {
//			// read c.Row()
//		} else {
//			break
//		}
//	}
type ColumnCursor interface {
	Cursor
	// NextColumns advances over the next rows of the result, as many calls of Next would,
	// and returns them. They are valid until the next call of Next, NextColumns or Close.
	// It returns nil, and does not advance, if the next row is not stored in columns, so
	// that only Next returns it, or if there are no more rows. There is no current Row
	// after it.
	NextColumns() Columns
}

// Columns are some rows of a result, at least one, in its order. All have the same custom
// properties with the same types. Rows are numbered from 0, and so are properties.
type Columns interface {
	// Len returns the number of rows.
	Len() int
	// AppendPartition appends the PartitionKey of a row to dst, in UTF-8.
	AppendPartition(dst []byte, row int) []byte
	// AppendRow appends the RowKey of a row to dst, in UTF-8.
	AppendRow(dst []byte, row int) []byte
	// Timestamp returns the time of the last write of a row.
	Timestamp(row int) edm.Ticks
	// Properties returns the number of custom properties of each row.
	Properties() int
	// Property returns the name and the type of a custom property, in the order of
	// edm.Row.At.
	Property(i int) (name string, t edm.Type)
	// AppendWords appends the values of a custom property in all rows to dst, as
	// edm.Value.Word returns them. The type must be none of String, Binary and Guid.
	AppendWords(dst []uint64, property int) []uint64
	// AppendBytes appends the values of a custom property in all rows to dst, as
	// edm.Value.Bytes returns them. The type must be String, Binary or Guid. The bytes
	// are valid as long as the rows, and must not be changed. It may read them
	// first. If that fails, it returns dst and the error, and ends the cursor, whose Err
	// returns the error too.
	AppendBytes(dst [][]byte, property int) ([][]byte, error)
}

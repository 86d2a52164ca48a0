package full

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
)

const (
	// rowsPerPartition is small enough that a partition is one transaction of an import.
	rowsPerPartition = 20
	rowsPerBatch     = 5
	tables           = 2
)

// tableNames are the tables of a case. The first one is dropped in some cases.
var tableNames = [tables]string{"Dropped", "Kept"}

// smallTable is a table with a few rows, for commands.
const smallTable = "Small"

// A row is known by its number, from which its table, key and content follow.
func rowNumber(table, partition, i int) int { return (partition*rowsPerPartition+i)*tables + table }
func tableOf(row int) int                   { return row % tables }
func partitionOf(row int) int               { return row / tables / rowsPerPartition }

// partitionKey scatters the partitions, so that the files of a database overlap.
func partitionKey(row int) string {
	p := partitionOf(row)
	return fmt.Sprintf("%04x-%06d", mix(uint64(p))&0xffff, p)
}

func rowKey(row int) string { return fmt.Sprintf("%08d", row) }

// rowOfKey returns the row with a key, and false if no row has it.
func rowOfKey(pk, rk string) (int, bool) {
	row, err := strconv.Atoi(rk)
	if err != nil || row < 0 {
		return 0, false
	}
	return row, rowKey(row) == rk && partitionKey(row) == pk
}

// valueBytes returns the size of a row's content: about 1 KB or about 20 KB.
func valueBytes(row int) int {
	spread := int(mix(uint64(row)) % 200)
	if row/tables%2 == 0 {
		return 900 + spread
	}
	return 20_000 + spread
}

// value returns the content of a row. Of four rows two can be compressed to about a quarter.
func value(seed uint64, row int) []byte {
	rng := rand.New(rand.NewPCG(seed, uint64(row)))
	b := make([]byte, valueBytes(row)+8)
	if row/tables%4 < 2 {
		for i := 0; i+8 <= len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], rng.Uint64())
		}
		return b[:valueBytes(row)]
	}
	for i := 0; i+8 <= len(b); i += 64 {
		word := rng.Uint64()
		for j := i; j < i+64 && j+8 <= len(b); j += 8 {
			binary.LittleEndian.PutUint64(b[j:], word|0x2020202020202020)
		}
	}
	return b[:valueBytes(row)]
}

// entityJSON appends a row as an entity of the protocol and of a line of an import.
func entityJSON(dst []byte, seed uint64, row int) []byte {
	dst = fmt.Appendf(dst, `{"PartitionKey":%q,"RowKey":%q,"V@odata.type":"Edm.Binary","V":"`, partitionKey(row), rowKey(row))
	dst = base64.StdEncoding.AppendEncode(dst, value(seed, row))
	return append(dst, `"}`...)
}

// entity is a row as the program returns it.
type entity struct {
	PartitionKey, RowKey string
	V                    []byte
}

// mix hashes a number to 64 bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

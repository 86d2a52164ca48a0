package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

const (
	perBatch     = 100
	perPartition = 1000
	// One of matching entities matches the filter.
	matching = 1000
	// textBytes is the size of an entity's strings. With it, the names and values of
	// the ten properties have 1 KiB.
	textBytes = 933
)

// dataset generates the entities of all workloads from their numbers. It is safe for
// concurrent use.
type dataset struct {
	n    int
	text string
}

// newDataset returns a dataset of n entities. Their text consists of short words, so that
// it compresses about as well as natural text.
func newDataset(n int, seed uint64) *dataset {
	rng := rand.New(rand.NewPCG(seed, 0))
	words := make([]string, 4096)
	for i := range words {
		word := make([]byte, 3+rng.IntN(8))
		for j := range word {
			word[j] = 'a' + byte(rng.IntN(26))
		}
		words[i] = string(word)
	}
	text := make([]byte, 0, 1<<20)
	for len(text) < 1<<20-16 {
		text = append(append(text, words[rng.IntN(len(words))]...), ' ')
	}
	return &dataset{n: n, text: string(text)}
}

// partitionOfBatch returns the partition of batch b. Consecutive batches have different
// partitions.
func (d *dataset) partitionOfBatch(b int) int { return b % max(1, d.n/perPartition) }

// partition returns the partition of entity i.
func (d *dataset) partition(table string, i int) int {
	if table == tableLoaded {
		return d.partitionOfBatch(i / perBatch)
	}
	return i % 1000
}

// entityPath returns the path of an entity, relative to the account.
func (d *dataset) entityPath(table string, i int) string {
	return fmt.Sprintf("%s(PartitionKey='p%05d',RowKey='%09d')", table, d.partition(table, i), i)
}

// appendEntity appends the JSON of an entity.
func (d *dataset) appendEntity(dst []byte, table string, i int) []byte {
	h := mix(uint64(i))
	dst = fmt.Appendf(dst, `{"PartitionKey":"p%05d","RowKey":"%09d","Rating":%d,"Active":%t,"Price":%d.25`,
		d.partition(table, i), i, i%matching, h&1 == 0, h%100000)
	dst = append(dst, `,"Total@odata.type":"Edm.Int64","Total":"`...)
	dst = strconv.AppendUint(dst, h>>1, 10)
	dst = fmt.Appendf(dst, `","Made@odata.type":"Edm.DateTime","Made":"2026-%02d-%02dT%02d:%02d:%02d.%07dZ"`,
		1+h%12, 1+h>>4%28, h>>9%24, h>>14%60, h>>20%60, h>>26%10000000)
	dst = fmt.Appendf(dst, `,"Id@odata.type":"Edm.Guid","Id":"%08x-0000-4000-8000-%012x"`, uint32(h), h>>16)
	for j, name := range [...]string{"City", "Street", "Name", "Note"} {
		n := [...]int{20, 40, 30, textBytes - 90}[j]
		at := int((h>>(8*j) + uint64(j)*7919) % uint64(len(d.text)-n))
		dst = append(dst, ',', '"')
		dst = append(dst, name...)
		dst = append(dst, `":"`...)
		dst = append(dst, d.text[at:at+n]...)
		dst = append(dst, '"')
	}
	return append(dst, '}')
}

// mix hashes a number to 64 bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// batchType is the Content-Type of the body that appendBatch appends.
const batchType = "multipart/mixed; boundary=batch_b"

// appendBatch appends the transaction that inserts the entities of a batch.
func (d *dataset) appendBatch(dst []byte, t *target, b int) []byte {
	scheme := map[bool]string{false: "http://", true: "https://"}[t.tls]
	dst = append(dst, "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n"...)
	for i := b * perBatch; i < (b+1)*perBatch; i++ {
		dst = append(dst, "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPOST "...)
		dst = append(dst, scheme+t.host+t.base+"/"+tableLoaded...)
		dst = append(dst, " HTTP/1.1\r\nAccept: application/json;odata=minimalmetadata\r\n"...)
		dst = append(dst, "Content-Type: application/json\r\nDataServiceVersion: 3.0\r\nPrefer: return-no-content\r\n\r\n"...)
		dst = d.appendEntity(dst, tableLoaded, i)
		dst = append(dst, "\r\n"...)
	}
	return append(dst, "--changeset_c--\r\n--batch_b--\r\n"...)
}

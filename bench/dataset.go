package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/arena"
)

// Properties of a generated entity, in the order of their names, in which a store keeps
// them. The encoding of the peers uses the numbers as ids.
const (
	PropActive = iota
	PropCount
	PropDevice
	PropHumidity
	PropLevel
	PropNote
	PropOwner
	PropPayload
	PropSite
	PropState
	PropTemperature
	PropTotal
	PropWhen
	NumProps
)

var propNames = [NumProps]string{
	"Active", "Count", "Device", "Humidity", "Level", "Note", "Owner",
	"Payload", "Site", "State", "Temperature", "Total", "When",
}

// Dataset is a fixed set of entities: the same seed and shape give the same
// entities. It stores them outside the Go heap and never frees them: they would let the
// garbage of a store grow to their size. It is safe for concurrent use.
type Dataset struct {
	shape   Shape
	records []byte // recordLen bytes of each entity
	text    []byte
	// Keys of fixed width, concatenated.
	partitions, rows, gaps string
	partitionLen           int
}

// record is the content of one entity: the words of some properties, and the offsets in
// Dataset.text at which the others end, from start.
type record struct {
	words [numWords]uint64
	start uint64
	ends  [numTexts]uint16
}

// recordLen is the length of the encoding of a record.
const recordLen = 8*(numWords+1) + 2*numTexts

// appendTo appends the encoding of r: all fields in order, little-endian.
func (r *record) appendTo(dst []byte) []byte {
	for _, w := range r.words {
		dst = binary.LittleEndian.AppendUint64(dst, w)
	}
	dst = binary.LittleEndian.AppendUint64(dst, r.start)
	for _, end := range r.ends {
		dst = binary.LittleEndian.AppendUint16(dst, end)
	}
	return dst
}

// wordProps and textProps are the properties of record.words and record.ends.
var (
	wordProps = [numWords]int{PropWhen, PropLevel, PropCount, PropTotal, PropTemperature, PropHumidity, PropActive}
	wordTypes = [numWords]edm.Type{
		edm.TypeDateTime, edm.TypeInt32, edm.TypeInt32, edm.TypeInt64, edm.TypeDouble, edm.TypeDouble, edm.TypeBoolean,
	}
	textProps = [numTexts]int{PropDevice, PropSite, PropState, PropOwner, PropNote, PropPayload}
)

const (
	numWords = 7
	numTexts = NumProps - numWords
	rowLen   = 13
	// RowKeys are numbers of 13 digits, as timestamps in milliseconds are. The
	// first one is firstMillis, and each one is stepMillis above the one before.
	firstMillis = 1_700_000_000_000
	stepMillis  = 250
)

// NewDataset generates the entities of a shape.
func NewDataset(shape Shape, seed uint64) *Dataset {
	d, _ := Generate(context.Background(), shape, seed, nil) // the end of ctx is its only error
	return d
}

// Generate is NewDataset until the end of ctx, which is an error. It counts the entities in
// made, unless nil, for a display.
func Generate(ctx context.Context, shape Shape, seed uint64, made *atomic.Int64) (*Dataset, error) {
	n := shape.Len()
	d := &Dataset{shape: shape, records: offHeap(n * recordLen)[:0], text: offHeap(n * textBytes)[:0]}
	g := newGenerator(seed)
	var r record
	for i := range n {
		if i%batchLen == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if made != nil {
				made.Store(int64(i))
			}
		}
		d.text = g.record(&r, d.text)
		d.records = r.appendTo(d.records)
	}
	d.makeKeys()
	return d, nil
}

// textBytes is more than the average length of the texts of a record.
const textBytes = 200

// offHeap returns n zeroed bytes outside the Go heap, if the system supports that.
func offHeap(n int) []byte {
	m, err := arena.New(n)
	if err != nil {
		return make([]byte, n)
	}
	return m.Bytes()
}

func (d *Dataset) makeKeys() {
	digits := max(6, len(strconv.Itoa(d.shape.Partitions-1)))
	d.partitionLen = len("dev-") + digits
	partitions := make([]byte, 0, d.shape.Partitions*d.partitionLen)
	for p := range d.shape.Partitions {
		partitions = fmt.Appendf(partitions, "dev-%0*d", digits, p)
	}
	rows, gaps := make([]byte, 0, d.shape.Rows*rowLen), make([]byte, 0, d.shape.Rows*rowLen)
	for r := range int64(d.shape.Rows) {
		rows = strconv.AppendInt(rows, firstMillis+r*stepMillis, 10)
		gaps = strconv.AppendInt(gaps, firstMillis+r*stepMillis+stepMillis/2, 10)
	}
	d.partitions, d.rows, d.gaps = string(partitions), string(rows), string(gaps)
}

// Shape returns the shape of the dataset.
func (d *Dataset) Shape() Shape { return d.shape }

// Len returns the number of entities.
func (d *Dataset) Len() int { return d.shape.Len() }

// Partition returns the PartitionKey of partition p.
func (d *Dataset) Partition(p int) string {
	return d.partitions[p*d.partitionLen : (p+1)*d.partitionLen]
}

// Key returns the key of entity i. Keys ascend with i.
func (d *Dataset) Key(i int) edm.Key {
	r := i % d.shape.Rows
	return edm.Key{Partition: d.Partition(i / d.shape.Rows), Row: d.rows[r*rowLen : (r+1)*rowLen]}
}

// Missing returns a key that no entity has, directly after that of entity i.
func (d *Dataset) Missing(i int) edm.Key {
	r := i % d.shape.Rows
	return edm.Key{Partition: d.Partition(i / d.shape.Rows), Row: d.gaps[r*rowLen : (r+1)*rowLen]}
}

// Fill sets *e to an entity with the key of entity i and the properties of entity
// number content modulo Len: entity i itself if both are equal, an overwrite of it
// otherwise. It reuses e.Properties and allocates only if there are none. The strings
// and bytes point into the dataset.
func (d *Dataset) Fill(i, content int, e *edm.Entity) {
	e.Key = d.Key(i)
	if len(e.Properties) != NumProps {
		e.Properties = make(edm.Properties, NumProps)
		for p := range e.Properties {
			e.Properties[p].Name = propNames[p]
		}
	}
	r := d.records[content%d.Len()*recordLen:][:recordLen]
	props := e.Properties
	for w, p := range wordProps {
		props[p].Value = edm.Fixed(wordTypes[w], binary.LittleEndian.Uint64(r[8*w:]))
	}
	text := d.text[binary.LittleEndian.Uint64(r[8*numWords:]):]
	from := uint16(0)
	for i, p := range textProps {
		to := binary.LittleEndian.Uint16(r[8*(numWords+1)+2*i:])
		switch part := text[from:to:to]; p {
		case PropDevice:
			props[p].Value = edm.GuidBytes(part)
		case PropPayload:
			props[p].Value = edm.Binary(part)
		default:
			props[p].Value = edm.StringBytes(part)
		}
		from = to
	}
}

// Batch returns n empty entities for Fill.
func Batch(n int) []edm.Entity { return make([]edm.Entity, n) }

// Order returns the numbers of all entities in random order.
func (d *Dataset) Order(seed uint64) []uint32 {
	order := make([]uint32, d.Len())
	for i := range order {
		order[i] = uint32(i)
	}
	r := rand.New(rand.NewPCG(seed, 2))
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// Bytes returns the average size of an entity's key and values in bytes, where a
// number has the width of its type.
func (d *Dataset) Bytes() float64 {
	const fixed = 8 + 4 + 4 + 8 + 8 + 8 + 1
	return float64(len(d.text))/float64(d.Len()) + float64(fixed+d.partitionLen+rowLen)
}

// generator draws random entities.
type generator struct {
	rnd   *rand.Rand
	zipf  *rand.Zipf
	words []string
}

const (
	vocabulary = 4096
	// zipfS and zipfV make a common word about as common as in English text.
	zipfS, zipfV = 1.1, 4
)

func newGenerator(seed uint64) *generator {
	rnd := rand.New(rand.NewPCG(seed, 1))
	g := &generator{rnd: rnd, zipf: rand.NewZipf(rnd, zipfS, zipfV, vocabulary-1)}
	for range vocabulary {
		g.words = append(g.words, g.invent())
	}
	return g
}

// invent returns a word of one to three syllables and a final consonant.
func (g *generator) invent() string {
	const consonants, vowels = "bcdfghklmnprstvz", "aeiou"
	var b strings.Builder
	for range 1 + g.rnd.IntN(3) {
		b.WriteByte(consonants[g.rnd.IntN(len(consonants))])
		b.WriteByte(vowels[g.rnd.IntN(len(vowels))])
	}
	b.WriteByte(consonants[g.rnd.IntN(len(consonants))])
	return b.String()
}

func (g *generator) record(r *record, text []byte) []byte {
	rnd := g.rnd
	start := len(text)
	r.start = uint64(start)
	r.words = [numWords]uint64{
		uint64(firstTicks + rnd.Int64N(yearTicks)),
		uint64(rnd.Int64N(100)),
		uint64(rnd.Int64N(countLimit)),
		uint64(rnd.Int64N(totalLimit)),
		math.Float64bits(rnd.Float64() * 100),
		math.Float64bits(rnd.NormFloat64()*10 + 50),
		uint64(rnd.IntN(2)),
	}
	text = binary.BigEndian.AppendUint64(text, rnd.Uint64())
	text = binary.BigEndian.AppendUint64(text, rnd.Uint64())
	r.ends[0] = uint16(len(text) - start)
	for p, words := range [numTexts - 2]int{1, 1, 2, 14} { // Site, State, Owner, Note
		for w := range words {
			if w > 0 {
				text = append(text, ' ')
			}
			text = append(text, g.words[g.zipf.Uint64()]...)
		}
		r.ends[1+p] = uint16(len(text) - start)
	}
	text = g.payload(text)
	r.ends[numTexts-1] = uint16(len(text) - start)
	return text
}

// payload appends 32 to 96 bytes of which seven in eight are random.
func (g *generator) payload(text []byte) []byte {
	for n := 32 + g.rnd.IntN(65); n > 0; n-- {
		b := byte(0)
		if n%8 != 0 {
			b = byte(g.rnd.Uint32())
		}
		text = append(text, b)
	}
	return text
}

const (
	firstTicks = 638_000_000_000_000_000 // a time in 2022
	yearTicks  = 365 * 24 * 3600 * 10_000_000
	countLimit = 1 << 20
	totalLimit = 1 << 40
)

// sums returns the checksum of the properties of each entity, or the error of ctx.
func (d *Dataset) sums(ctx context.Context) ([]uint64, error) {
	sums := make([]uint64, d.Len())
	var e edm.Entity
	for i := range sums {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var f Fold
		d.Fill(i, i, &e)
		f.Row(e.View())
		sums[i] = f.Sum()
	}
	return sums, nil
}

package documents

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/tablerock-db/tablerock/server/internal/cors"
	"github.com/tablerock-db/tablerock/store"
)

// Format of stored metadata. The encoding is canonical: equal values have equal bytes, and
// only those bytes decode to the values.
//
//	metadata    u32 magic | u8 version | fields | u32 CRC-32C of all before it
//	policies    magic "TRac": u8 count, then of each: text Id, time Start, time Expiry, text Permission
//	properties  magic "TRsp": u8 flags | u16 days of Logging, HourMetrics, MinuteMetrics | u8 count of rules,
//	            then of each: words methods, origins, headers allowed, headers exposed, u32 seconds
//	text        u16 bytes | bytes
//	words       u16 count | text of each
//	time        u64 ticks of 100 ns since 1601-01-01T00:00:00Z; all ones: no time
//	flags       1 Logging.Read, 2 Write, 4 Delete, 8 HourMetrics, 16 with APIs, 32 MinuteMetrics, 64 with APIs
//
// Integers are little-endian. All of this is part of the file format: a store keeps it as
// the metadata of a table or of the account.
const (
	policiesMagic   = 'T' | 'R'<<8 | 'a'<<16 | 'c'<<24
	propertiesMagic = 'T' | 'R'<<8 | 's'<<16 | 'p'<<24
	formatVersion   = 1

	headBytes = 5
	sumBytes  = 4
	noTime    = 1<<64 - 1
)

// The errors of stored metadata, tested by errors.Is.
var (
	// ErrStored reports that stored bytes are damaged. It wraps store.ErrCorrupt.
	ErrStored = fmt.Errorf("stored metadata is damaged: %w", store.ErrCorrupt)
	// ErrStoredVersion reports that a newer version of Tablerock wrote the bytes.
	ErrStoredVersion = errors.New("stored metadata has a newer format")
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	le         = binary.LittleEndian
)

// EncodePolicies appends the stored form of policies that ParsePolicies or DecodePolicies
// returned. Without policies it appends nothing.
func EncodePolicies(dst []byte, policies []Policy) []byte {
	if len(policies) == 0 {
		return dst
	}
	start := len(dst)
	dst = appendHead(dst, policiesMagic)
	dst = append(dst, byte(len(policies)))
	for _, p := range policies {
		dst = encodeText(dst, p.ID)
		dst = encodeTime(dst, p.Start)
		dst = encodeTime(dst, p.Expiry)
		dst = encodeText(dst, p.Permission)
	}
	return appendSum(dst, start)
}

// DecodePolicies decodes the output of EncodePolicies. An empty src has no policies. The
// error is ErrStored or ErrStoredVersion.
func DecodePolicies(src []byte) ([]Policy, error) {
	if len(src) == 0 {
		return nil, nil
	}
	d, err := newDecoder(src, policiesMagic)
	if err != nil {
		return nil, err
	}
	n := d.u8()
	if n == 0 || n > maxPolicies {
		return nil, fmt.Errorf("%w: %d policies", ErrStored, n)
	}
	policies := make([]Policy, n)
	for i := range policies {
		policies[i] = Policy{ID: d.text(), Start: d.time(), Expiry: d.time(), Permission: d.text()}
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	if err := checkPolicies(policies); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrStored, err) // not an *Error, since the client is not at fault
	}
	return policies, nil
}

// EncodeProperties appends the stored form of properties that MergeProperties or
// DecodeProperties returned.
func EncodeProperties(dst []byte, p Properties) []byte {
	start := len(dst)
	dst = appendHead(dst, propertiesMagic)
	var flags byte
	for i, on := range p.flags() {
		if *on {
			flags |= 1 << i
		}
	}
	dst = append(dst, flags)
	for _, days := range p.days() {
		dst = le.AppendUint16(dst, uint16(*days))
	}
	dst = append(dst, byte(len(p.Cors)))
	for i := range p.Cors {
		for _, words := range wordsOf(&p.Cors[i]) {
			dst = le.AppendUint16(dst, uint16(len(*words)))
			for _, word := range *words {
				dst = encodeText(dst, word)
			}
		}
		dst = le.AppendUint32(dst, uint32(p.Cors[i].MaxAge))
	}
	return appendSum(dst, start)
}

// DecodeProperties decodes the output of EncodeProperties. An empty src is the zero
// Properties. The error is ErrStored or ErrStoredVersion.
func DecodeProperties(src []byte) (Properties, error) {
	var p Properties
	if len(src) == 0 {
		return p, nil
	}
	d, err := newDecoder(src, propertiesMagic)
	if err != nil {
		return p, err
	}
	set := d.u8()
	for i, on := range p.flags() {
		*on = set&(1<<i) != 0
	}
	invalid := set&(1<<7) != 0 || p.HourMetrics.IncludeAPIs && !p.HourMetrics.Enabled || p.MinuteMetrics.IncludeAPIs && !p.MinuteMetrics.Enabled
	for _, days := range p.days() {
		*days = int(d.u16())
		invalid = invalid || *days > maxRetentionDays
	}
	n := d.u8()
	if invalid || n > cors.MaxRules {
		return Properties{}, fmt.Errorf("%w: flags %#x, or a number of days or rules out of range", ErrStored, set)
	}
	for range n {
		var rule cors.Rule
		for _, words := range wordsOf(&rule) {
			*words = d.words()
		}
		rule.MaxAge = int(d.u32())
		p.Cors = append(p.Cors, rule)
	}
	if err := d.end(); err != nil {
		return Properties{}, err
	}
	if err := cors.Check(p.Cors); err != nil {
		return Properties{}, fmt.Errorf("%w: %v", ErrStored, err)
	}
	return p, nil
}

// flags returns the fields of the stored flags, from the lowest bit up.
func (p *Properties) flags() [7]*bool {
	l, h, m := &p.Logging, &p.HourMetrics, &p.MinuteMetrics
	return [...]*bool{&l.Read, &l.Write, &l.Delete, &h.Enabled, &h.IncludeAPIs, &m.Enabled, &m.IncludeAPIs}
}

func (p *Properties) days() [3]*int {
	return [...]*int{&p.Logging.RetentionDays, &p.HourMetrics.RetentionDays, &p.MinuteMetrics.RetentionDays}
}

func wordsOf(r *cors.Rule) [4]*[]string {
	return [...]*[]string{&r.AllowedMethods, &r.AllowedOrigins, &r.AllowedHeaders, &r.ExposedHeaders}
}

func appendHead(dst []byte, magic uint32) []byte {
	return append(le.AppendUint32(dst, magic), formatVersion)
}

// appendSum appends the checksum of the stored form that begins at start.
func appendSum(dst []byte, start int) []byte {
	return le.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

func encodeText(dst []byte, s string) []byte {
	return append(le.AppendUint16(dst, uint16(len(s))), s...)
}

func encodeTime(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return le.AppendUint64(dst, noTime)
	}
	seconds := uint64(t.Unix() - minTime.Unix())
	return le.AppendUint64(dst, seconds*uint64(time.Second/tick)+uint64(t.Nanosecond())/uint64(tick))
}

// decoder reads fields. After a field that does not fit, bad is set and all fields are zero.
type decoder struct {
	rest []byte
	bad  bool
}

// newDecoder checks length, checksum, magic and version of stored metadata. The checksum
// includes the version and is checked first, so that damage does not look like a newer
// format.
func newDecoder(src []byte, magic uint32) (*decoder, error) {
	if len(src) < headBytes+sumBytes {
		return nil, fmt.Errorf("%w: only %d bytes", ErrStored, len(src))
	}
	body, sum := src[:len(src)-sumBytes], le.Uint32(src[len(src)-sumBytes:])
	if got := crc32.Checksum(body, castagnoli); got != sum {
		return nil, fmt.Errorf("%w: checksum %08x, want %08x", ErrStored, got, sum)
	}
	if got := le.Uint32(body); got != magic {
		return nil, fmt.Errorf("%w: magic %08x, want %08x", ErrStored, got, magic)
	}
	switch version := body[4]; {
	case version == 0:
		return nil, fmt.Errorf("%w: version 0", ErrStored)
	case version > formatVersion:
		return nil, fmt.Errorf("%w: version %d, the newest known is %d", ErrStoredVersion, version, formatVersion)
	}
	return &decoder{rest: body[headBytes:]}, nil
}

// end checks that all bytes were read, and no more.
func (d *decoder) end() error {
	if d.bad || len(d.rest) > 0 {
		return fmt.Errorf("%w: the length does not match the fields", ErrStored)
	}
	return nil
}

var zeros [8]byte

// take returns the next n bytes. If there are fewer, it returns at most 8 zeros.
func (d *decoder) take(n int) []byte {
	if n > len(d.rest) {
		d.bad, d.rest = true, nil
		return zeros[:min(n, len(zeros))]
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) u8() byte     { return d.take(1)[0] }
func (d *decoder) u16() uint16  { return le.Uint16(d.take(2)) }
func (d *decoder) u32() uint32  { return le.Uint32(d.take(4)) }
func (d *decoder) text() string { return string(d.take(int(d.u16()))) }

func (d *decoder) words() []string {
	n := int(d.u16())
	// Each word has at least 2 bytes, of its length.
	if 2*n > len(d.rest) {
		d.bad = true
		return nil
	}
	var words []string
	for range n {
		words = append(words, d.text())
	}
	return words
}

func (d *decoder) time() time.Time {
	ticks := le.Uint64(d.take(8))
	if ticks == noTime {
		return time.Time{}
	}
	const perSecond = uint64(time.Second / tick)
	if ticks >= uint64(endTime.Unix()-minTime.Unix())*perSecond {
		d.bad = true
		return time.Time{}
	}
	return time.Unix(minTime.Unix()+int64(ticks/perSecond), int64(ticks%perSecond)*int64(tick)).UTC()
}

package odata

import "github.com/tablerock-db/tablerock/edm"

// AppendKeyLink appends the URL of an entity relative to its account, such as
// Book(PartitionKey='a',RowKey='b'). The URL is ASCII; the keys are UTF-8.
func AppendKeyLink[T string | []byte](dst []byte, table string, partition, row T) []byte {
	dst = append(append(dst, table...), linkPartition...)
	dst = appendLinkText(dst, partition)
	dst = append(dst, linkRow...)
	dst = appendLinkText(dst, row)
	return append(dst, linkEnd...)
}

// The text around the keys in a link.
const (
	linkPartition = "(PartitionKey='"
	linkRow       = "',RowKey='"
	linkEnd       = "')"
)

// AppendTableLink appends the URL of a table relative to its account, such as
// Tables('Book').
func AppendTableLink(dst []byte, table string) []byte {
	dst = append(dst, "Tables('"...)
	dst = appendLinkText(dst, table)
	return append(dst, linkEnd...)
}

// appendRowLink appends the link of row.
func appendRowLink(dst []byte, row edm.Row, table string) []byte {
	dst = append(append(dst, table...), linkPartition...)
	from := len(dst)
	dst = linkTail(row.AppendPartition(dst), from)
	dst = append(dst, linkRow...)
	from = len(dst)
	dst = linkTail(row.AppendRow(dst), from)
	return append(dst, linkEnd...)
}

// plainLink marks the characters that a link does not escape: letters, digits,
// -_.~, and the others that have no meaning of their own in any URL. appendLinkText
// doubles the quote.
var plainLink = func() (t [256]bool) {
	for c := range t {
		b := byte(c)
		t[c] = 'a' <= b|0x20 && b|0x20 <= 'z' || '0' <= b && b <= '9'
	}
	for _, c := range "-_.~!*()" {
		t[c] = true
	}
	return t
}()

// appendLinkText appends s in the form that a link has between its quotes: it
// doubles quotes and writes other characters as percent escapes of their UTF-8.
func appendLinkText[T string | []byte](dst []byte, s T) []byte {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		switch c := s[i]; {
		case plainLink[c]:
			dst = append(dst, c)
		case c == '\'':
			dst = append(dst, "''"...)
		default:
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		}
	}
	return dst
}

// linkTail escapes dst[from:] for a link.
func linkTail(dst []byte, from int) []byte {
	for from < len(dst) && plainLink[dst[from]] {
		from++
	}
	if from == len(dst) {
		return dst
	}
	mid := len(dst)
	return replaceTail(appendLinkText(dst, dst[from:]), from, mid)
}

// replaceTail replaces dst[from:mid] with dst[mid:].
func replaceTail(dst []byte, from, mid int) []byte { return dst[:from+copy(dst[from:], dst[mid:])] }

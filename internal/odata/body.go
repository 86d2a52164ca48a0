package odata

import (
	"strings"
	"time"
	"unicode/utf8"
)

// AppendError appends an error as JSON. Invalid UTF-8 in message becomes replacement
// characters.
func AppendError(dst []byte, code, message, requestID string, at time.Time) []byte {
	dst = append(dst, `{"odata.error":{"code":`...)
	dst = AppendText(dst, code, true)
	dst = append(dst, `,"message":{"lang":"en-US","value":"`...)
	from := len(dst)
	dst = quoteTail(appendErrorText(dst, message, requestID, at), from, true)
	return append(dst, "}}}"...)
}

// appendErrorText appends the text of an error, which JSON and XML share: the
// message, the request ID, and the time with seven fractional digits.
func appendErrorText(dst []byte, message, requestID string, at time.Time) []byte {
	dst = append(dst, strings.ToValidUTF8(message, "\uFFFD")...)
	dst = append(append(dst, "\nRequestId:"...), requestID...)
	dst = append(dst, "\nTime:"...)
	return at.UTC().AppendFormat(dst, "2006-01-02T15:04:05.0000000Z")
}

// metadataNamespace is the XML namespace of error documents.
const metadataNamespace = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"

var xmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// xmlChar returns r, or the replacement character if no XML document can have r (XML 1.0,
// section 2.2).
func xmlChar(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
		return utf8.RuneError
	}
	return r
}

// AppendErrorXML appends an error as an XML document without a declaration: write one
// before it. Its elements have the given prefix, "m:" or none.
func AppendErrorXML(dst []byte, prefix, code, message, requestID string, at time.Time) []byte {
	attribute := "xmlns"
	if prefix != "" {
		attribute += ":" + strings.TrimSuffix(prefix, ":")
	}
	dst = append(dst, `<`+prefix+`error `+attribute+`="`+metadataNamespace+`">`...)
	dst = append(dst, `<`+prefix+`code>`+code+`</`+prefix+`code><`+prefix+`message xml:lang="en-US">`...)
	text := strings.Map(xmlChar, string(appendErrorText(nil, message, requestID, at)))
	dst = append(dst, xmlEscapes.Replace(text)...)
	return append(dst, `</`+prefix+`message></`+prefix+`error>`...)
}

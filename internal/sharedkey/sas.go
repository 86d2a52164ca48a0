package sharedkey

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// Policy is a stored access policy of a table's ACL. Start, Expiry and Permission may
// be empty.
type Policy struct{ ID, Start, Expiry, Permission string }

// Versions of shared access signatures that introduced a change.
const (
	versionService  = "2012-02-12" // the first for tables
	versionResource = "2015-02-21" // the resource begins with /table
	versionAddress  = "2015-04-05" // signs addresses and protocols; the first for accounts
	versionScope    = "2020-12-06" // signs the encryption scope for accounts
)

const maxIdentifierLen = 64

// verifySAS verifies a shared access signature: first its format, then the signature,
// and only then the stored policy, the times and the connection.
func (v *Verifier) verifySAS(ctx context.Context, r *Request, p *parameters) (Grant, error) {
	if !p.wellFormed() {
		return Grant{}, refusedAuthentication
	}
	// An unescaped + of base64 arrives as a space.
	signature := p.values[fieldSignature]
	if len(signature) == signatureLen {
		signature = strings.ReplaceAll(signature, " ", "+")
	}
	c := v.newClaim(r.Account, signature, true)
	m := messages.Get().(*message)
	defer m.release()
	m.text = p.appendTo(m.text[:0], r.Account)
	if !c.keys.match(m.text, &c.signature) {
		return Grant{}, refusedAuthentication
	}
	if p.values[fieldIdentifier] != "" {
		if err := v.completeFromPolicy(ctx, r.Account, p); err != nil {
			return Grant{}, err
		}
	}
	if !validAt(v.Now(), p.values[fieldStart], p.values[fieldExpiry]) {
		return Grant{}, refusedTimes
	}
	if p.values[fieldProtocol] == "https" && !r.TLS {
		return Grant{}, refusedProtocol
	}
	if !addressAllowed(p.values[fieldIP], r.Remote) {
		return Grant{}, mismatch("AuthorizationSourceIPMismatch", "source IP "+r.Remote.String())
	}
	return p.grant()
}

// isAccount reports whether this is an account SAS. Otherwise it is a table SAS.
func (p *parameters) isAccount() bool { return p.any(fieldServices, fieldResourceTypes) }

// wellFormed reports whether p is a shared access signature, its version signs every
// parameter, and every parameter is valid.
func (p *parameters) wellFormed() bool {
	version := p.values[fieldVersion]
	if _, err := time.Parse(time.DateOnly, version); err != nil {
		return false
	}
	if !validDate(p.values[fieldStart]) || !validDate(p.values[fieldExpiry]) || !validAddresses(p.values[fieldIP]) {
		return false
	}
	switch p.values[fieldProtocol] {
	case "", "https", "https,http":
	default:
		return false
	}
	if p.isAccount() {
		return p.wellFormedAccount(version)
	}
	return p.wellFormedService(version)
}

func (p *parameters) wellFormedAccount(version string) bool {
	unsigned := p.any(fieldTable, fieldIdentifier, fieldStartPartition, fieldStartRow, fieldEndPartition, fieldEndRow) ||
		version < versionScope && p.present[fieldEncryptionScope]
	return !unsigned && version >= versionAddress && p.values[fieldExpiry] != "" &&
		accountLetters.permits(p.values[fieldPermissions]) &&
		serviceLetters.permits(p.values[fieldServices]) &&
		resourceTypeLetters.permits(p.values[fieldResourceTypes])
}

func (p *parameters) wellFormedService(version string) bool {
	unsigned := p.present[fieldEncryptionScope] || version < versionAddress && p.any(fieldIP, fieldProtocol)
	rowAlone := p.present[fieldStartRow] && !p.present[fieldStartPartition] || p.present[fieldEndRow] && !p.present[fieldEndPartition]
	// The signature is the same without an end, and covers all keys then.
	emptyEnd := p.empty(fieldEndPartition) || p.empty(fieldEndRow)
	if unsigned || rowAlone || emptyEnd || version < versionService || !isTableName(p.values[fieldTable]) {
		return false
	}
	letters := p.values[fieldPermissions]
	if id := p.values[fieldIdentifier]; id != "" {
		return len(id) <= maxIdentifierLen*4 && edm.UTF16Len(id) <= maxIdentifierLen && (letters == "" || inTableOrder(letters))
	}
	return p.values[fieldExpiry] != "" && inTableOrder(letters)
}

// isTableName reports whether name consists of ASCII letters and digits, after an
// optional dollar sign as in the service's own tables. Case folding could turn other
// letters into those of a different table.
func isTableName(name string) bool {
	name = strings.TrimPrefix(name, "$")
	for i := range len(name) {
		if c := name[i] | 0x20; (c < 'a' || c > 'z') && (name[i] < '0' || name[i] > '9') {
			return false
		}
	}
	return name != ""
}

// appendTo appends the string to sign. For an account, every line ends in a line feed;
// for a table, every line except the last. An absent value is an empty line.
//
//	account           account sp ss srt st se sip spr sv, from 2020-12-06 ses
//	table             sp st se resource si sip spr sv spk srk epk erk
//	before 2015-04-05 sp st se resource si sv spk srk epk erk
func (p *parameters) appendTo(dst []byte, account string) []byte {
	line := func(values ...string) {
		for _, value := range values {
			dst = append(append(dst, value...), '\n')
		}
	}
	w, version := &p.values, p.values[fieldVersion]
	if p.isAccount() {
		line(account, w[fieldPermissions], w[fieldServices], w[fieldResourceTypes], w[fieldStart], w[fieldExpiry])
		line(w[fieldIP], w[fieldProtocol], version)
		if version >= versionScope {
			line(w[fieldEncryptionScope])
		}
		return dst
	}
	line(w[fieldPermissions], w[fieldStart], w[fieldExpiry])
	if version >= versionResource {
		dst = append(dst, "/table"...)
	}
	dst = append(append(dst, '/'), account...)
	dst = append(dst, '/')
	line(edm.FoldTableName(w[fieldTable]), w[fieldIdentifier])
	if version >= versionAddress {
		line(w[fieldIP], w[fieldProtocol])
	}
	line(version, w[fieldStartPartition], w[fieldStartRow], w[fieldEndPartition])
	return append(dst, w[fieldEndRow]...)
}

// completeFromPolicy adds the fields of the stored policy to the token. It refuses a
// field that both have, even with equal values. validAt later refuses a token without
// an expiry.
func (v *Verifier) completeFromPolicy(ctx context.Context, account string, p *parameters) error {
	if v.Policies == nil {
		return refusedAuthentication
	}
	policies, err := v.Policies(ctx, account, p.values[fieldTable])
	if errors.Is(err, store.ErrTableNotFound) {
		return refusedAuthentication
	}
	if err != nil {
		return err
	}
	for _, policy := range policies {
		if policy.ID != p.values[fieldIdentifier] {
			continue
		}
		for _, stored := range [...]struct {
			field field
			value string
		}{{fieldStart, policy.Start}, {fieldExpiry, policy.Expiry}, {fieldPermissions, policy.Permission}} {
			if stored.value != "" && p.values[stored.field] != "" {
				return refusedAuthentication
			}
			p.values[stored.field] += stored.value
		}
		complete := validDate(p.values[fieldStart]) && validDate(p.values[fieldExpiry]) && tableLetters.permits(p.values[fieldPermissions])
		if !complete {
			return refusedAuthentication
		}
		return nil
	}
	return refusedAuthentication
}

// grant returns the permissions of the token.
func (p *parameters) grant() (Grant, error) {
	g := Grant{kind: byAccountSAS, permissions: p.values[fieldPermissions]}
	if p.isAccount() {
		if !strings.Contains(p.values[fieldServices], "t") {
			return Grant{}, refusedService
		}
		g.resourceTypes = p.values[fieldResourceTypes]
		return g, nil
	}
	g.kind, g.table = byTableSAS, edm.FoldTableName(p.values[fieldTable])
	g.bounds = Range{
		Start:    edm.Key{Partition: p.values[fieldStartPartition], Row: p.values[fieldStartRow]},
		End:      edm.Key{Partition: p.values[fieldEndPartition], Row: p.values[fieldEndRow]},
		HasEnd:   p.present[fieldEndPartition],
		WholeEnd: !p.present[fieldEndRow],
	}
	g.bounded = p.any(fieldStartPartition, fieldEndPartition)
	return g, nil
}

// letters is the set of letters that a parameter may contain.
type letters string

const (
	serviceLetters      letters = "bqtf"
	resourceTypeLetters letters = "sco"
	accountLetters      letters = "rwdxylacuptfi"
	tableLetters        letters = "raud"
)

// permits reports whether text consists of letters of l, at least one and each at most
// once.
func (l letters) permits(text string) bool {
	for i := range len(text) {
		if strings.IndexByte(string(l), text[i]) < 0 || strings.IndexByte(text[:i], text[i]) >= 0 {
			return false
		}
	}
	return text != ""
}

// inTableOrder reports whether text consists of letters of a table's permissions in the
// service's order.
func inTableOrder(text string) bool {
	last := -1
	for i := range len(text) {
		at := strings.IndexByte(string(tableLetters), text[i])
		if at <= last {
			return false
		}
		last = at
	}
	return text != ""
}

var errDate = errors.New("not a date")

const maxDateLen = len("2006-01-02T15:04:05.0000000+00:00")

// parseTime parses the three formats of a time in a token. Seconds may have a fraction,
// like the times of stored policies.
func parseTime(text string) (time.Time, error) {
	if len(text) > maxDateLen {
		return time.Time{}, errDate
	}
	const minutes = len("2006-01-02T15:04")
	layout := time.RFC3339
	if len(text) == len(time.DateOnly) {
		layout = time.DateOnly
	} else if len(text) > minutes && text[minutes] != ':' {
		layout = "2006-01-02T15:04Z07:00"
	}
	return time.Parse(layout, text)
}

// validDate reports whether text is empty or a time.
func validDate(text string) bool {
	if text == "" {
		return true
	}
	_, err := parseTime(text)
	return err == nil
}

// validAt reports whether now is at or after start and before expiry. An empty start
// is valid; an empty expiry is not.
func validAt(now time.Time, start, expiry string) bool {
	if from, err := parseTime(start); start != "" && (err != nil || now.Before(from)) {
		return false
	}
	until, err := parseTime(expiry)
	return err == nil && now.Before(until)
}

// parseAddresses parses an address, or the first and last address of a range.
func parseAddresses(text string) (first, last netip.Addr, err error) {
	low, high, ranged := strings.Cut(text, "-")
	if first, err = netip.ParseAddr(low); err != nil || !ranged {
		return first, first, err
	}
	last, err = netip.ParseAddr(high)
	return first, last, err
}

// validAddresses reports whether text is empty, an address or a range.
func validAddresses(text string) bool {
	_, _, err := parseAddresses(text)
	return err == nil || text == ""
}

// addressAllowed reports whether text is empty or contains addr. An IPv4 address is
// equal to its IPv4-mapped IPv6 form.
func addressAllowed(text string, addr netip.Addr) bool {
	if text == "" {
		return true
	}
	first, last, err := parseAddresses(text)
	if err != nil {
		return false
	}
	first, last, addr = first.Unmap(), last.Unmap(), addr.Unmap().WithZone("")
	sameFamily := first.BitLen() == addr.BitLen() && last.BitLen() == addr.BitLen()
	return sameFamily && first.Compare(addr) <= 0 && addr.Compare(last) <= 0
}

// plain reports whether text is valid UTF-8 without control characters.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] < 0x20 || text[i] == 0x7f {
			return false
		}
	}
	return utf8.ValidString(text)
}

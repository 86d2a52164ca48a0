package serve

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/openfile"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/selfsigned"
)

// certificate is the certificate of a server. Connections use the one that was loaded
// last.
type certificate struct {
	c       *Config
	host    string
	current atomic.Pointer[tls.Certificate]
}

// newCertificate loads the certificate, nil without TLS.
func (c *Config) newCertificate(host string) (*certificate, error) {
	if !c.tls() {
		return nil, nil
	}
	t := &certificate{c: c, host: host}
	return t, t.load()
}

// load loads the certificate again. A certificate that is only in memory stays, since
// clients may trust it.
func (t *certificate) load() error {
	if t.c.SelfSigned && t.c.InMemory && t.current.Load() != nil {
		return nil
	}
	pair, err := t.c.certificate(t.host)
	if err == nil {
		t.current.Store(&pair)
	}
	return err
}

// expires returns the end of the certificate's validity.
func (t *certificate) expires() time.Time { return t.current.Load().Leaf.NotAfter }

// config returns the TLS configuration, nil for nil.
func (t *certificate) config() *tls.Config {
	if t == nil {
		return nil
	}
	return &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return t.current.Load(), nil },
		MinVersion:     tls.VersionTLS12,
	}
}

func (c *Config) certificate(host string) (tls.Certificate, error) {
	if c.Cert != "" {
		return c.givenCertificate()
	}
	if host == "" { // all addresses: the certificate names no other host
		host = "localhost"
	}
	if c.InMemory {
		cert, key, err := selfsigned.New(host)
		if err != nil {
			return tls.Certificate{}, err
		}
		return tls.X509KeyPair(cert, key)
	}
	pair, err := selfsigned.In(c.Data, host)
	if err == nil {
		c.say("clients have to trust the certificate in %s", filepath.Join(c.Data, selfsigned.CertFile))
	}
	return pair, err
}

// givenCertificate reads the certificate of --cert.
func (c *Config) givenCertificate() (tls.Certificate, error) {
	flags := fmt.Sprintf("--cert %s and --key %s", c.Cert, c.Key)
	cert, err := openfile.ReadRegular(c.Cert)
	if err != nil {
		return tls.Certificate{}, unreadable(flags, err)
	}
	key, err := openfile.ReadRegular(c.Key)
	if err != nil {
		return tls.Certificate{}, unreadable(flags, err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err == nil && hasPartialBlock(cert) { // X509KeyPair ignores it, and clients need each certificate
		err = fmt.Errorf("a certificate in %s is not complete", c.Cert)
	}
	if err != nil {
		return tls.Certificate{}, usagef("%s: %v", flags, err)
	}
	return pair, nil
}

// hasPartialBlock reports whether a PEM file has the beginning of a block that cannot be decoded, as
// while another program writes the file.
func hasPartialBlock(text []byte) bool {
	blocks := bytes.Count(text, []byte("-----BEGIN "))
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return blocks > 0
		}
		text = rest
		blocks--
	}
}

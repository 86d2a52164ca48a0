package serve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// The files of a self-signed certificate. No account can have these names.
const (
	selfSignedCert = "self-signed.crt"
	selfSignedKey  = "self-signed.key"
)

// selfSignedValidity is the validity of a self-signed certificate. Clients accept no longer
// one.
const selfSignedValidity = 365 * 24 * time.Hour

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
		cert, key, err := makeCertificate(host)
		if err != nil {
			return tls.Certificate{}, err
		}
		return tls.X509KeyPair(cert, key)
	}
	certFile, keyFile := filepath.Join(c.Data, selfSignedCert), filepath.Join(c.Data, selfSignedKey)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil || pair.Leaf.VerifyHostname(host) != nil || time.Until(pair.Leaf.NotAfter) < 24*time.Hour {
		pair, err = writeCertificate(certFile, keyFile, host)
	}
	if err == nil {
		c.say("clients have to trust the certificate in %s", certFile)
	}
	return pair, err
}

// givenCertificate reads the certificate of --cert.
func (c *Config) givenCertificate() (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	switch {
	case err == nil:
		return pair, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return pair, fmt.Errorf("--cert %s and --key %s: %w", c.Cert, c.Key, err)
	}
	return pair, usagef("--cert %s and --key %s: %v", c.Cert, c.Key, err)
}

// writeCertificate makes a certificate and stores it, so that clients trust the server
// after a restart, too.
func writeCertificate(certFile, keyFile, host string) (tls.Certificate, error) {
	cert, key, err := makeCertificate(host)
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := errors.Join(
		os.MkdirAll(filepath.Dir(certFile), 0o700),
		os.WriteFile(keyFile, key, 0o600),
		os.WriteFile(certFile, cert, 0o600),
	); err != nil {
		return tls.Certificate{}, fmt.Errorf("--self-signed: %w", err)
	}
	return tls.X509KeyPair(cert, key)
}

// makeCertificate makes a certificate for host and for all names of this machine.
func makeCertificate(host string) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "Tablerock, for development"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(selfSignedValidity),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              []string{"localhost", "*.table.localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = append(template.IPAddresses, ip)
	} else if host != "localhost" {
		template.DNSNames = append(template.DNSNames, host)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), nil
}

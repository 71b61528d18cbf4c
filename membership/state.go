package membership

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// Keys of the machine. Stamps and epochs are 20 decimal digits, so that keys
// sort by them.
//
//	genesis                  the genesis with its signatures
//	epoch                    decimal: the current epoch
//	fsm_version              decimal
//	o/<operator>             Operator
//	e/<epoch>                epochRecord, of every epoch there has been
//	n/<node>                 Node, removed ones too
//	i/<x>                    invitationRecord, used and expired ones too
//	c/<change>               changeRecord, while approvals are missing
//	k/<x>                    empty: a key somebody has or had
//	x/<stamp>/i/<x>          empty: when an invitation expires
//	x/<stamp>/c/<change>     empty: when a pending removal expires
const (
	keyGenesis = "genesis"
	keyEpoch   = "epoch"
	keyVersion = "fsm_version"

	prefixOperator   = "o/"
	prefixEpoch      = "e/"
	prefixNode       = "n/"
	prefixInvitation = "i/"
	prefixChange     = "c/"
	prefixKey        = "k/"
	prefixExpiry     = "x/"
)

// Node is one node as the state holds it.
type Node struct {
	Node      string        `json:"node"`
	Operator  string        `json:"operator"`
	Role      Role          `json:"role"`
	PBFTKey   string        `json:"pbft_key"`
	AttestKey string        `json:"attest_key"`
	Addrs     []string      `json:"addrs,omitempty"`
	Since     machine.Stamp `json:"since_ms"` // when it joined; 0: a founding voter
	Removed   machine.Stamp `json:"removed_ms,omitempty"`
	Removal   string        `json:"removal,omitempty"` // the pending change that would remove it
}

func (n *Node) voter() Voter {
	return Voter{Node: n.Node, Operator: n.Operator, PBFTKey: n.PBFTKey, AttestKey: n.AttestKey}
}

type epochRecord struct {
	Epoch  uint64        `json:"epoch"`
	Seq    uint64        `json:"seq"` // entry that began it; 0: the genesis
	Since  machine.Stamp `json:"since_ms"`
	Voters []Voter       `json:"voters"` // ascending by node, without addrs
}

// InvitationState is where an invitation stands.
type InvitationState string

// The states of an invitation.
const (
	PendingApproval InvitationState = "pending_approval"
	Open            InvitationState = "open"
	Used            InvitationState = "used"
	Expired         InvitationState = "expired"
)

type invitationRecord struct {
	Key      string          `json:"key"`
	Role     Role            `json:"role"`
	Operator string          `json:"operator"` // will answer for the node
	By       string          `json:"by"`
	State    InvitationState `json:"state"`
	Expires  machine.Stamp   `json:"expires_ms"`
	Change   string          `json:"change"`
	Node     string          `json:"node,omitempty"` // who used it
}

// changeWhat tells what a pending change would do.
type changeWhat string

const (
	changeInvite changeWhat = "invite" // subject: the invitation's x
	changeRemove changeWhat = "remove" // subject: the node
)

type changeRecord struct {
	Change    string        `json:"change"`
	What      changeWhat    `json:"what"`
	Subject   string        `json:"subject"`
	Operator  string        `json:"operator"` // whose approval is needed in any case; empty: nobody's
	Approvals []string      `json:"approvals"`
	Expires   machine.Stamp `json:"expires_ms"`
}

// state reads and writes the machine's records. Its errors are corruption.
type state struct{ tx machine.Tx }

func (s state) save(key string, v any) error { return s.tx.Put([]byte(key), canon.MustMarshal(v)) }

func (s state) saveNode(n *Node) error { return s.save(prefixNode+n.Node, n) }

func (s state) node(id string) (*Node, error) { return machine.Load[Node](s.tx, prefixNode+id) }

func (s state) invitation(x string) (*invitationRecord, error) {
	return machine.Load[invitationRecord](s.tx, prefixInvitation+x)
}

func (s state) saveInvitation(i *invitationRecord) error { return s.save(prefixInvitation+i.Key, i) }

func (s state) change(id string) (*changeRecord, error) {
	return machine.Load[changeRecord](s.tx, prefixChange+id)
}

func (s state) saveChange(c *changeRecord) error { return s.save(prefixChange+c.Change, c) }

func (s state) dropChange(id string) error { return s.tx.Delete([]byte(prefixChange + id)) }

func (s state) uint(key string) (uint64, error) {
	raw, err := s.tx.Get([]byte(key))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("membership: record %q is damaged or missing", key)
	}
	return n, nil
}

func (s state) putUint(key string, n uint64) error {
	return s.tx.Put([]byte(key), strconv.AppendUint(nil, n, 10))
}

func epochKey(epoch uint64) string { return prefixEpoch + fmt.Sprintf("%020d", epoch) }

// current is the epoch that is under way.
func (s state) current() (*epochRecord, error) {
	n, err := s.uint(keyEpoch)
	if err != nil {
		return nil, err
	}
	e, err := machine.Load[epochRecord](s.tx, epochKey(n))
	if err == nil && e == nil {
		err = fmt.Errorf("membership: epoch %d is missing", n)
	}
	return e, err
}

func (s state) saveEpoch(e *epochRecord) error {
	if err := s.save(epochKey(e.Epoch), e); err != nil {
		return err
	}
	return s.putUint(keyEpoch, e.Epoch)
}

func (s state) keyTaken(k sign.PublicKey) (bool, error) {
	return machine.Has(s.tx, prefixKey+k.Class())
}

func (s state) takeKey(k sign.PublicKey) error {
	return s.tx.Put([]byte(prefixKey+k.Class()), []byte{})
}

func expiryKey(at machine.Stamp, kind, id string) []byte {
	return fmt.Appendf(nil, "%s%020d/%s%s", prefixExpiry, at, kind, id)
}

func (s state) schedule(at machine.Stamp, kind, id string) error {
	return s.tx.Put(expiryKey(at, kind, id), []byte{})
}

func (s state) unschedule(at machine.Stamp, kind, id string) error {
	return s.tx.Delete(expiryKey(at, kind, id))
}

// nextExpiry is the earliest stamp at which something expires.
func (s state) nextExpiry() (at machine.Stamp, ok bool, err error) {
	err = s.tx.Range([]byte(prefixExpiry), []byte("x0"), func(k, _ []byte) (bool, error) {
		at, _, err = splitExpiry(k)
		ok = err == nil
		return false, err
	})
	return at, ok, err
}

// splitExpiry reads an expiry key: when, and what as "i/<x>" or "c/<change>".
func splitExpiry(k []byte) (machine.Stamp, string, error) {
	stamp, what, ok := strings.Cut(strings.TrimPrefix(string(k), prefixExpiry), "/")
	at, err := strconv.ParseInt(stamp, 10, 64)
	if !ok || err != nil {
		return 0, "", fmt.Errorf("membership: key %q is damaged", k)
	}
	return machine.Stamp(at), what, nil
}

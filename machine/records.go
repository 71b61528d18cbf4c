package machine

import (
	"encoding/json"
	"fmt"
)

// Key is a key or the beginning of one, as a machine likes to write it.
type Key interface{ ~string | ~[]byte }

// Has reports whether there is a value under a key, an empty one too.
func Has[K Key](tx Tx, key K) (bool, error) {
	v, err := tx.Get([]byte(key))
	return v != nil, err
}

// Read fills v from the JSON record under a key; false when the key is
// absent. A record that is not v's is corruption, a plain error.
func Read[K Key](tx Tx, key K, v any) (bool, error) {
	text, err := tx.Get([]byte(key))
	if err != nil || text == nil {
		return false, err
	}
	return true, parse(key, text, v)
}

// Load is [Read] of a record of its own; nil when the key is absent.
func Load[T any, K Key](tx Tx, key K) (*T, error) {
	v := new(T)
	if ok, err := Read(tx, key, v); err != nil || !ok {
		return nil, err
	}
	return v, nil
}

// Save writes a JSON record. encoding/json writes the members of a struct in
// order and those of a map sorted, so all nodes store the same bytes.
func Save[K Key](tx Tx, key K, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %T for key %q: %w", v, key, err)
	}
	return tx.Put([]byte(key), text)
}

// Each visits the keys that start with prefix, ascending, with what follows
// the prefix: all of them, or those behind prefix+after. It ends where f
// returns false or errs; f must not write.
func Each[K Key](tx Tx, prefix K, after string, f func(rest string, v []byte) (bool, error)) error {
	from := []byte(string(prefix) + after)
	if after != "" {
		from = append(from, 0)
	}
	return tx.Range(from, above(prefix), func(k, v []byte) (bool, error) {
		return f(string(k[len(prefix):]), v)
	})
}

// EachRecord is [Each] over JSON records; a damaged one is a plain error.
func EachRecord[T any, K Key](tx Tx, prefix K, after string, f func(rest string, v *T) (bool, error)) error {
	return Each(tx, prefix, after, func(rest string, text []byte) (bool, error) {
		v := new(T)
		if err := parse(string(prefix)+rest, text, v); err != nil {
			return false, err
		}
		return f(rest, v)
	})
}

func parse[K Key](key K, text []byte, v any) error {
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("local state is corrupt: key %q holds no %T: %w", key, v, err)
	}
	return nil
}

// above is the least key behind every key that starts with prefix; nil is the end.
func above[K Key](prefix K) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

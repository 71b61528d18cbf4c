package machine

import "fmt"

// PageSize is how many items a reader gets at once: the usual number unless
// he asks for another. It refuses with out_of_range what is not 1 to most.
func PageSize(asked *int, usual, most int) (int, error) {
	if asked == nil {
		return usual, nil
	}
	if *asked < 1 || *asked > most {
		return 0, Refuse(CodeOutOfRange, fmt.Sprintf("give 1 to %d", most), "limit is %d", *asked)
	}
	return *asked, nil
}

// Page lists what follows the prefix in at most limit keys, as [Each] visits
// them. next is the last of them where more keys come, to go on after; "" ends.
func Page[K Key](tx Tx, prefix K, after string, limit int) (ids []string, next string, err error) {
	err = Each(tx, prefix, after, func(id string, _ []byte) (bool, error) {
		if len(ids) == limit {
			next = ids[limit-1]
			return false, nil
		}
		ids = append(ids, id)
		return true, nil
	})
	return ids, next, err
}

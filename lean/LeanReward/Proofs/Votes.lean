import LeanReward.Votes

/-! Missing and future evidence never counts, the order of the replicas does not matter, and a lost vote never helps. -/

namespace LeanReward

/-- A vote is positive iff an available judge claims it on a quote found no later than the segment's end. -/
theorem positive_iff (ballot : Ballot) :
    ballot.positive = true ↔
      ballot.available = true ∧ (.support ∈ ballot.chunks ∧ .contradiction ∉ ballot.chunks) ∧
        ∃ turn, ballot.quote = some turn ∧ turn ≤ ballot.segmentEnd := by
  have claimed : claims ballot.chunks = true ↔ .support ∈ ballot.chunks ∧ .contradiction ∉ ballot.chunks := by
    have supports (a : Answer) : a.supports = true ↔ a = .support := by cases a <;> simp [Answer.supports]
    have contradicts (a : Answer) : a.contradicts = true ↔ a = .contradiction := by cases a <;> simp [Answer.contradicts]
    simp only [claims, Bool.and_eq_true, Bool.not_eq_true', ← Bool.not_eq_true, List.any_eq_true, supports, contradicts]
    constructor
    · rintro ⟨⟨answer, member, rfl⟩, free⟩
      exact ⟨member, fun bad => free ⟨_, bad, rfl⟩⟩
    · rintro ⟨member, free⟩
      exact ⟨⟨_, member, rfl⟩, fun ⟨_, inside, same⟩ => free (same ▸ inside)⟩
  unfold Ballot.positive
  rw [Bool.and_eq_true, Bool.and_eq_true, claimed, and_assoc]
  cases ballot.quote <;> simp [Nat.ble_eq]

theorem missing_quote_never_positive (ballot : Ballot) (h : ballot.quote = none) : ballot.positive = false := by
  simp [Ballot.positive, h]

theorem future_quote_never_positive (ballot : Ballot) {turn : Nat} (h : ballot.quote = some turn)
    (future : ballot.segmentEnd < turn) : ballot.positive = false := by
  refine Bool.eq_false_iff.mpr fun positive => ?_
  have ⟨_, _, found, same, inTime⟩ := (positive_iff ballot).mp positive
  rw [h] at same
  injection same with same
  omega

theorem downgraded_never_positive (ballot : Ballot) {why : Downgrade} (h : ballot.downgrade = some why) :
    ballot.positive = false := by
  unfold Ballot.downgrade at h
  split at h
  · unfold Ballot.positive
    cases quote : ballot.quote with
    | none => simp
    | some turn =>
      simp only [quote] at h
      split at h
      · cases h
      · rename_i late
        exact (Bool.and_eq_false_iff.mpr (.inr (Bool.eq_false_iff.mpr fun h => late (Nat.le_of_ble_eq_true h))))
  · cases h

theorem failed_judge_never_positive (ballot : Ballot) (h : ballot.available = false) : ballot.positive = false := by
  simp [Ballot.positive, h]

theorem positives_eq (votes : List Bool) : positives votes = votes.countP id := by
  induction votes with
  | nil => rfl
  | cons vote rest ih => cases vote <;> simp [positives, ih]

theorem majority_eq (votes : List Bool) :
    majority votes = if votes.length < 2 * positives votes then .plus else .minus := by
  unfold majority
  cases h : Nat.blt votes.length (2 * positives votes) with
  | true => simp [Nat.blt_eq.mp h]
  | false =>
    have : ¬votes.length < 2 * positives votes := fun less => by simp [Nat.blt_eq.mpr less] at h
    simp [this]

theorem beta_eq (ballots : List Ballot) :
    beta ballots = if ballots.any (·.available) then some (majority (ballots.map Ballot.positive)) else none := by
  unfold beta
  cases ballots.any (·.available) <;> rfl

theorem positives_perm {votes others : List Bool} (h : votes.Perm others) : positives votes = positives others := by
  rw [positives_eq, positives_eq, h.countP_eq id]

theorem majority_perm {votes others : List Bool} (h : votes.Perm others) : majority votes = majority others := by
  simp only [majority_eq, positives_perm h, h.length_eq]

/-- The majority does not depend on the order of the replicas. -/
theorem beta_perm {ballots others : List Ballot} (h : ballots.Perm others) : beta ballots = beta others := by
  have available : ballots.any (·.available) = others.any (·.available) := by
    rw [Bool.eq_iff_iff, List.any_eq_true, List.any_eq_true]
    exact ⟨fun ⟨b, m, a⟩ => ⟨b, h.mem_iff.mp m, a⟩, fun ⟨b, m, a⟩ => ⟨b, h.mem_iff.mpr m, a⟩⟩
  simp only [beta_eq, available, majority_perm (h.map Ballot.positive)]

theorem positives_append (before after : List Bool) : positives (before ++ after) = positives before + positives after := by
  simp only [positives_eq, List.countP_append]

/-- Turning a vote to -1 never raises the majority. -/
theorem majority_mono (before after : List Bool) (vote : Bool) :
    (majority (before ++ false :: after)).value ≤ (majority (before ++ vote :: after)).value := by
  have fewer : positives (before ++ false :: after) ≤ positives (before ++ vote :: after) := by
    simp only [positives_append]
    cases vote <;> simp [positives]
  have same : (before ++ false :: after).length = (before ++ vote :: after).length := by simp
  simp only [majority_eq]
  split <;> split <;> simp [Sign.value]
  omega

/-- Replacing a ballot by one that is not positive never raises beta, while some judge stays available. -/
theorem beta_mono (before after : List Ballot) (ballot worse : Ballot) (lost : worse.positive = false)
    {low high : Sign} (hlow : beta (before ++ worse :: after) = some low)
    (hhigh : beta (before ++ ballot :: after) = some high) : low.value ≤ high.value := by
  rw [beta_eq] at hlow hhigh
  split at hlow
  · split at hhigh
    · injection hlow with hlow
      injection hhigh with hhigh
      rw [← hlow, ← hhigh]
      simp only [List.map_append, List.map_cons, lost]
      exact majority_mono ..
    · cases hhigh
  · cases hlow

/-- Without an available judge a stage is unannotated, never +1. -/
theorem beta_unavailable (ballots : List Ballot) (h : ∀ ballot ∈ ballots, ballot.available = false) :
    beta ballots = none := by
  have : ballots.any (·.available) = false := by
    simpa using h
  simp [beta_eq, this]

/-- beta = +1 needs more than half of the replicas to be positive. -/
theorem beta_plus_iff (ballots : List Ballot) :
    beta ballots = some .plus ↔ ballots.length < 2 * positives (ballots.map Ballot.positive) := by
  constructor
  · intro h
    rw [beta_eq, majority_eq] at h
    split at h
    · split at h
      · rename_i most
        simpa using most
      · simp at h
    · cases h
  · intro h
    have available : ballots.any (·.available) = true := by
      refine Classical.byContradiction fun none => ?_
      simp only [Bool.not_eq_true, List.any_eq_false] at none
      have : positives (ballots.map Ballot.positive) = 0 := by
        rw [positives_eq]
        refine List.countP_eq_zero.mpr fun vote member => ?_
        have ⟨ballot, inside, same⟩ := List.mem_map.mp member
        rw [← same, failed_judge_never_positive ballot (by simpa using none ballot inside)]
        simp
      omega
    simp [beta_eq, available, majority_eq, h]

end LeanReward

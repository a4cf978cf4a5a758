import LeanReward.Proofs.PackedPenalties
import LeanReward.Proofs.PackedRewards
import LeanReward.Proofs.PackedSegmentation

/-! A packed claim holds exactly when the claim that it packs does. -/

namespace LeanReward.Packed

/-- What a certificate proves is the claim that its number packs. -/
theorem holds_eq (p : Packed) : p.holds = p.claim.holds := by
  unfold holds Claim.holds
  rw [both_eq, both_eq, both_eq, segmentationHolds_eq, votesHold_eq, penaltiesHold_eq, rewardsHold_eq]
  simp only [Bool.and_assoc]

end LeanReward.Packed

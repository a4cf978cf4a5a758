import LeanReward.Proofs.Coverage
import LeanReward.Proofs.Information
import LeanReward.Proofs.Packed
import LeanReward.Proofs.Rollout
import LeanReward.Proofs.Segmentation
import LeanReward.Proofs.VariableChain

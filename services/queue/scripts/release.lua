-- release: a worker gives leased jobs back.
--
-- ARGV: keep_ms, counted (1: the attempt counts, 0: they are untried), then key, token for each lease. Stale tokens are ignored.
-- Answer: the number of jobs that wait again.

local keep, uncounted = tonumber(ARGV[1]), 1 - tonumber(ARGV[2])
local again = 0
may_grow()
for i = 3, #ARGV, 2 do
  local key = ARGV[i]
  local job = redis.call('HMGET', root .. 'job:' .. key, 'token', 'attempt')
  if job[1] == ARGV[i + 1] then
    redis.call('ZREM', root .. 'leases', key)
    if requeue(key, job[2] - uncounted, keep) then
      again = again + 1
    end
  end
end
wake(again)
return again

-- release: a worker gives leased jobs back untried; the attempt is not counted.
--
-- ARGV: keep_ms, then key, token for each lease. Stale tokens are ignored.
-- Answer: the number of jobs that wait again.

local keep = tonumber(ARGV[1])
local again = 0
may_grow()
for i = 2, #ARGV, 2 do
  local key = ARGV[i]
  local job = redis.call('HMGET', root .. 'job:' .. key, 'token', 'attempt')
  if job[1] == ARGV[i + 1] then
    redis.call('ZREM', root .. 'leases', key)
    if requeue(key, job[2] - 1, keep) then
      again = again + 1
    end
  end
end
wake(again)
return again

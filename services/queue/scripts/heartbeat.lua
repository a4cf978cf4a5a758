-- heartbeat: renews leases.
--
-- ARGV: lease_ms, then key, token for each lease.
-- Answer: the tokens whose job is no longer the worker's, or that nobody wants any more.

local lease = tonumber(ARGV[1])
local lost = {}
may_grow()
for i = 2, #ARGV, 2 do
  local key, token = ARGV[i], ARGV[i + 1]
  local job = redis.call('HMGET', root .. 'job:' .. key, 'token', 'till')
  if job[1] ~= token then
    lost[#lost + 1] = token
  elseif tonumber(job[2]) <= now then
    redis.call('ZREM', root .. 'leases', key)
    forget(key)
    lost[#lost + 1] = token
  else
    redis.call('ZADD', root .. 'leases', 'XX', string.format('%.0f', now + lease), key)
  end
end
return lost

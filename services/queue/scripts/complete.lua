-- complete: results of leased jobs go to all their subscribers.
--
-- ARGV: keep_ms, then key, token, timed out (0 or 1), result for each job.
-- Answer: 1 for each job whose token is current, 0 for the others, of which nothing was delivered.
--
-- A job that timed out stays with the subscribers who want longer than it was given, and waits again for them.

local keep = tonumber(ARGV[1])
local answer, again, accepted = {}, 0, 0
may_grow()
for i = 2, #ARGV, 4 do
  local key, token, timed_out, result = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local subs = root .. 'subs:' .. key
  local job = redis.call('HMGET', root .. 'job:' .. key, 'token', 'timeout')
  if job[1] ~= token then
    answer[#answer + 1] = 0
  else
    redis.call('ZREM', root .. 'leases', key)
    local unsatisfied = false
    local all = redis.call('HGETALL', subs)
    for j = 1, #all, 2 do
      local timeout = tonumber(string.match(all[j + 1], '^%S+ (%S+)'))
      if timed_out == '1' and timeout > tonumber(job[2]) then
        unsatisfied = true
      else
        redis.call('HDEL', subs, all[j])
        deliver(all[j], key, 'd' .. result, keep)
      end
    end
    if unsatisfied then
      if requeue(key, 0, keep) then
        again = again + 1
      end
    else
      redis.call('DEL', root .. 'job:' .. key)
    end
    answer[#answer + 1] = 1
    accepted = accepted + 1
  end
end
if again > 0 then
  wake(again)
end
if accepted > 0 then
  redis.call('HINCRBY', root .. 'clock', 'done', accepted)
  outlive(root .. 'clock', keep)
end
return answer

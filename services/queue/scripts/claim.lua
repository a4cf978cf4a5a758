-- claim: leases waiting jobs to a worker, in order. Jobs that nobody wants any more are dropped on the way.
--
-- ARGV: worker, limit, lease_ms, keep_ms, token prefix (never used before).
-- Answer: depth left, then key, payload, token, attempt, timeout_ms, priority for each job.
--
-- A job whose last worker vanished is leased alone: were it to end its next worker too, none would go down with it.

local MAX_DROPS = 500

local worker, limit = ARGV[1], tonumber(ARGV[2])
local lease, keep, prefix = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local taken, dropped, answer = 0, 0, { 0 }
may_grow()
redis.call('ZREM', root .. 'idle', worker)

-- Takes a key from the front of its line and gives the other flows, and the other lines of its flow, their turn.
local function take(key, line, level, score)
  redis.call('ZREM', root .. 'line:' .. line, key)
  redis.call('ZREM', root .. 'waiting', key)
  local band = tonumber(string.match(level, '^(%-?%d+):'))
  redis.call('HSET', root .. 'clock', band, string.format('%.0f', score + band * ROUNDS))
  if redis.call('EXISTS', root .. 'line:' .. line) == 1 then
    redis.call('ZINCRBY', root .. 'lines:' .. level, 1, line)
  elseif close_line(line, level) then
    return
  end
  redis.call('ZINCRBY', root .. 'levels', 1, level)
end

while taken < limit and dropped < MAX_DROPS do
  local head = redis.call('ZRANGE', root .. 'levels', 0, 0, 'WITHSCORES')
  if not head[1] then
    break
  end
  local level, score = head[1], tonumber(head[2])
  local line = redis.call('ZRANGE', root .. 'lines:' .. level, 0, 0)[1]
  local key = line and redis.call('ZRANGE', root .. 'line:' .. line, 0, 0)[1]
  local want = key and wanted(key)
  local job = key and redis.call('HMGET', root .. 'job:' .. key, 'payload', 'attempt')
  if not line then
    redis.call('ZREM', root .. 'levels', level)
  elseif not key then
    close_line(line, level)
  elseif not want or want.till <= now or not job[1] then
    leave(key, line)
    forget(key)
    dropped = dropped + 1
  else
    local attempt = tonumber(job[2]) + 1
    if attempt > 1 and taken > 0 then
      break
    end
    take(key, line, level, score)
    taken = taken + 1
    local token = prefix .. taken
    redis.call('ZADD', root .. 'leases', string.format('%.0f', now + lease), key)
    outlive(root .. 'leases', life_until(want.till, keep))
    redis.call('HSET', root .. 'job:' .. key, 'line', '', 'token', token, 'worker', worker, 'attempt', attempt,
      'timeout', want.timeout)
    for _, value in ipairs({ key, job[1], token, attempt, want.timeout, priority_of(line, level) }) do
      answer[#answer + 1] = value
    end
    if attempt > 1 then
      break
    end
  end
end

answer[1] = wake(0)
if taken == 0 and answer[1] == 0 then
  rest(worker)
end
return answer

-- Prepended to every script: the keys of a queue and what the scripts do with them.
--
-- KEYS[1] is the root, such as "lean-reward:{lean}:". The braces are a hash tag: in a cluster all keys of a queue share
-- one slot, so scripts may build the names below from the root.
--
-- job:$key               A hash. payload; seq: its place in time; line: where it waits, empty while it runs; floor: the
--                        priority it was raised to; till: when its last subscription ends (ms); attempt: claims so
--                        far; token, worker, timeout: its lease, absent while it waits.
-- subs:$key              A hash of subscriber -> terms, "priority timeout_ms till_ms seq flow".
-- pending:$subscriber    A set of the keys whose result the subscriber still waits for.
-- results:$subscriber    A hash of key -> "d" .. result (done) or "c" (crashed).
-- home:$subscriber       A string: the home that hears of its results.
-- deliveries:$home       A stream of s (subscriber), k (key), e (end, as in results).
-- cancels:$worker        A stream of t (token): leases that nobody wants any more.
-- waiting                A sorted set of all waiting keys by seq.
-- line:$line             A sorted set of the waiting keys of one line by seq. A line is what one subscriber wants at one
--                        priority: "$level:$priority:$subscriber".
-- lines:$level           A sorted set of the lines of one level in the order in which they are served. A level is what
--                        one flow wants in one band of priorities: "$band:$length:$flow", the flow's length in bytes
--                        first, so that a line tells its level whatever its names hold.
-- levels                 A sorted set of the levels with waiting keys, in the order in which they are served.
-- clock                  A hash. seq: the last one given out; $band: the round that this band is in; done: checks completed.
-- leases                 A sorted set of the running keys by the end of their lease (ms).
-- idle                   A sorted set of workers that found nothing to do, by when (ms).
-- wake:$worker           A list of tokens: something waits since the worker was idle. It pops one, then claims.
-- reserved               A hash of submission -> "count end_ms": depth set aside for submissions that take several calls.
-- workers, worker:$name  A sorted set of announced workers by the end of their announcement (ms), and what each said.
--
-- Order: a level's score is -band * ROUNDS + round. Serving a level moves it to the next round; a level that enters joins
-- the round after the one being served. This is start-time fair queueing (Goyal, Vin and Cheng, 1996) where every job
-- costs 1, and the finish tag of a flow that comes back is that of a flow that was just served. Tags belong to levels and
-- not to jobs, so a flow that cancels its jobs owes nothing for them. Within a level the highest priority goes first, and
-- lines of one priority take turns in the same way; one that enters joins the round after the next to be served. So flows
-- share a band equally, however many batches each has and whatever their priorities are within it, and the batches of a
-- flow share what it gets.
--
-- Out of memory, the server refuses commands that may grow, but not after a script's first write. Only submit is meant
-- to fail then (as a whole); all else makes room in the end, and calls may_grow first.

local ROUNDS = 2 ^ 42 -- a score stays an exact integer in a double: |priority| < 2 ^ 11
local STEPS = 9 -- priorities in a band, as in jobs.py
local WAKE_MS = 60000

local root = KEYS[1]
local clock = redis.call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)

local function may_grow()
  redis.call('ZREM', root .. 'leases', '')
end

-- Lets a key live for ms more, never shorter than it would. Asked once a script for each key and time.
local lives = {}
local function outlive(key, ms)
  if (lives[key] or 0) < ms then
    if redis.call('PTTL', key) < ms then
      redis.call('PEXPIRE', key, string.format('%.0f', ms))
    end
    lives[key] = ms
  end
end

local function level_of(line)
  local head, length = string.match(line, '^(%-?%d+:(%d+):)')
  return string.sub(line, 1, #head + length)
end

local function priority_of(line, level)
  return tonumber(string.match(string.sub(line, #level + 2), '^(%-?%d+):'))
end

-- The line of a subscriber who is charged to a flow, at a priority.
local function line_of(priority, flow, subscriber)
  local band = math.floor(priority / STEPS)
  return band .. ':' .. #flow .. ':' .. flow .. ':' .. priority .. ':' .. subscriber
end

-- Marks a line, and its level, as one with waiting keys.
local entered = {}
local function open_line(line, level, priority)
  if entered[line] then
    return
  end
  local band = math.floor(priority / STEPS)
  local round = redis.call('HGET', root .. 'clock', band) or 0
  redis.call('ZADD', root .. 'levels', 'NX', round + 1 - band * ROUNDS, level)
  local lines, base = root .. 'lines:' .. level, -priority * ROUNDS
  local next_up = redis.call('ZRANGEBYSCORE', lines, string.format('%.0f', base), string.format('(%.0f', base + ROUNDS),
    'WITHSCORES', 'LIMIT', 0, 1)
  redis.call('ZADD', lines, 'NX', string.format('%.0f', (next_up[2] or base) + 1), line)
  entered[line] = true
end

-- Unmarks a line that has no waiting keys, and its level when that was the last one; true then.
local function close_line(line, level)
  redis.call('ZREM', root .. 'lines:' .. level, line)
  entered[line] = nil
  if redis.call('EXISTS', root .. 'lines:' .. level) == 0 then
    redis.call('ZREM', root .. 'levels', level)
    return true
  end
end

-- Lets everything that a waiting key needs live for ms more.
local function outlive_waiting(line, level, ms)
  outlive(root .. 'line:' .. line, ms)
  outlive(root .. 'lines:' .. level, ms)
  outlive(root .. 'waiting', ms)
  outlive(root .. 'levels', ms)
  outlive(root .. 'clock', ms)
end

-- Puts a key into a line. life: for how long it matters (ms).
local function enter(key, line, priority, seq, life)
  local level = level_of(line)
  redis.call('ZADD', root .. 'line:' .. line, seq, key)
  redis.call('ZADD', root .. 'waiting', seq, key)
  open_line(line, level, priority)
  outlive_waiting(line, level, life)
end

local function leave(key, line)
  redis.call('ZREM', root .. 'line:' .. line, key)
  redis.call('ZREM', root .. 'waiting', key)
  if redis.call('EXISTS', root .. 'line:' .. line) == 0 then
    close_line(line, level_of(line))
  end
  lives = {} -- what became empty is gone, and would come back without its expiry
end

-- What the subscribers of a key want together: the highest priority (and who asked for it first, and that one's flow),
-- the longest timeout and the latest end. nil: nobody is left.
local function wanted(key)
  local all = redis.call('HGETALL', root .. 'subs:' .. key)
  local best
  for i = 2, #all, 2 do
    local priority, timeout, till, seq, flow = string.match(all[i], '^(%S+) (%S+) (%S+) (%S+) (.*)$')
    priority, timeout, till, seq = tonumber(priority), tonumber(timeout), tonumber(till), tonumber(seq)
    if not best then
      best = { priority = priority, timeout = timeout, till = till, seq = seq, flow = flow, subscriber = all[i - 1] }
    else
      if priority > best.priority or (priority == best.priority and seq < best.seq) then
        best.priority, best.seq, best.flow, best.subscriber = priority, seq, flow, all[i - 1]
      end
      best.timeout = math.max(best.timeout, timeout)
      best.till = math.max(best.till, till)
    end
  end
  return best
end

local function life_until(till, keep)
  return math.max(till - now, 0) + keep
end

-- Moves a waiting key to where its subscribers, and its floor, want it.
local function replace(key, line, floor, seq, keep)
  local best = wanted(key)
  if not best then
    return
  end
  local priority = math.max(best.priority, tonumber(floor))
  local better = line_of(priority, best.flow, best.subscriber)
  if better ~= line then
    leave(key, line)
    enter(key, better, priority, seq, life_until(best.till, keep))
    redis.call('HSET', root .. 'job:' .. key, 'line', better)
  end
end

-- Ends a job without a result. Who still waits for it stops waiting.
local function forget(key)
  for _, subscriber in ipairs(redis.call('HKEYS', root .. 'subs:' .. key)) do
    redis.call('SREM', root .. 'pending:' .. subscriber, key)
  end
  redis.call('DEL', root .. 'job:' .. key, root .. 'subs:' .. key)
end

-- Gives a job that ran back to the waiting, in its old place. Answers false when nobody wants it any more.
local function requeue(key, attempt, keep)
  local best = wanted(key)
  if not best or best.till <= now then
    forget(key)
    return false
  end
  local job = root .. 'job:' .. key
  local kept = redis.call('HMGET', job, 'floor', 'seq')
  local priority = math.max(best.priority, tonumber(kept[1]))
  local line = line_of(priority, best.flow, best.subscriber)
  enter(key, line, priority, kept[2], life_until(best.till, keep))
  redis.call('HSET', job, 'line', line, 'attempt', attempt)
  redis.call('HDEL', job, 'token', 'worker', 'timeout')
  return true
end

-- Tells one subscriber how a job ended, unless it was told or has left. ending: as in results.
local homes = {}
local function deliver(subscriber, key, ending, keep)
  if redis.call('SREM', root .. 'pending:' .. subscriber, key) == 0 then
    return
  end
  local results = root .. 'results:' .. subscriber
  redis.call('HSET', results, key, ending)
  outlive(results, keep)
  local home = homes[subscriber]
  if home == nil then
    home = redis.call('GET', root .. 'home:' .. subscriber)
    homes[subscriber] = home
  end
  if home then
    local stream = root .. 'deliveries:' .. home
    redis.call('XADD', stream, '*', 's', subscriber, 'k', key, 'e', ending)
    outlive(stream, keep)
  end
end

-- Sees to it that idle workers hear of waiting keys. added: how many were added. Called last by every script that adds to
-- or takes from the waiting. Who was idle last is woken first: it is the most likely to live still. A worker that was woken
-- and claims wakes one more while keys wait; if it dies instead, the next claim or reap of anyone does. Each worker has a
-- list of its own, because a server looks at everybody who waits for a list whenever something is pushed to it.
local function wake(added)
  local depth = redis.call('ZCARD', root .. 'waiting')
  if depth == 0 then
    return depth
  end
  local idle = root .. 'idle'
  local woken = redis.call('ZPOPMAX', idle, math.min(math.max(added, 1), depth))
  for i = 1, #woken, 2 do
    local list = root .. 'wake:' .. woken[i]
    redis.call('RPUSH', list, 1)
    redis.call('PEXPIRE', list, WAKE_MS)
  end
  return depth
end

-- Notes that a worker found nothing to do. It then waits for its token, and asks again within WAKE_MS.
local function rest(worker)
  local idle = root .. 'idle'
  redis.call('DEL', root .. 'wake:' .. worker)
  redis.call('ZADD', idle, string.format('%.0f', now), worker)
  redis.call('ZREMRANGEBYSCORE', idle, '-inf', string.format('(%.0f', now - WAKE_MS))
  redis.call('PEXPIRE', idle, WAKE_MS)
end

-- Asks for the leases of groups: all that one candidate looks at in one step, each judged on its own.
-- KEYS: for each group: lease, state, fence
-- ARGV: for each group: holder, TTL in ms, longest TTL of anybody in ms, highest term known, '1' = first start, '1' = the only process of its id, yield in ms
-- Gives: for each group: verdict, holder, remaining ms, term, remark; or 'failed' with the error
local time = redis.call('TIME')
local micros = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(micros / 1000)

local function whole(number)
  return string.format('%.0f', number)
end

-- A holder is `<instance>#<nonce>`.
local function instance(holder)
  return string.match(holder or '', '^(.*)#')
end

local server
-- This process of the server: its id, how long it has run at the least, in ms (it tells whole seconds; nil when it may not be asked),
-- and whether it keeps what it is told but for the last moments.
local function process()
  if not server then
    local info = redis.pcall('INFO', 'server')
    local told = type(info) == 'string'
    local uptime = told and tonumber(string.match(info, 'uptime_in_seconds:(%d+)'))
    local persistence = redis.pcall('INFO', 'persistence')
    server = {
      id = told and string.match(info, 'run_id:(%x+)') or '',
      age = uptime and (uptime - 1) * 1000,
      keeps = type(persistence) == 'string' and string.find(persistence, 'aof_enabled:1', 1, true) ~= nil,
    }
  end
  return server
end

-- How much longer an old leader may believe because the server was restarted: what it was told last may be lost, an acquisition among
-- it. `led` = it remembers a leader that did not give the lease back, and as much as the asker knows.
local function after_restart(born_in, seen, ttl, longest, led)
  local server = process()
  -- The last renewal that is remembered may have been followed by one just before the lease's end, and by others in the span that is lost.
  local since_renewal = (seen or 0) + ttl + 2000 + ttl - now
  if born_in == server.id and server.id ~= '' then
    return 0
  end
  if not server.age then
    return since_renewal
  end
  local since_start = longest - server.age
  -- Of an append-only file the last two seconds may be lost, and only with the whole machine; of a snapshot anything.
  return server.keeps and led and math.min(since_renewal, since_start) or since_start
end

local function campaign(lease, state, fence, holder, ttl, longest, known, first_start, only_one, yield)
  local kept = redis.call('HMGET', state, 'born', 'quarantine', 'term', 'ttl', 'seen', 'drained', 'holder', 'released', 'vacant', 'first', 'run',
    'foreign_since', 'foreign_until', 'foreign')
  local born, term, last_holder = tonumber(kept[1]), tonumber(kept[3]) or 0, kept[7]
  local kept_ttl = tonumber(kept[4]) or 0

  local function answer(verdict, held, remaining, remark)
    return { verdict, held or '', whole(remaining), whole(term), remark or '' }
  end

  local held = redis.pcall('GET', lease)
  if type(held) == 'table' then
    if not string.find(held.err or '', 'WRONGTYPE', 1, true) then
      error(held)
    end
    -- A key of another type is nobody's of ours, and is never taken.
    return answer('held', '', -1, 'wrong_type')
  end

  -- A group without a birth mark has lost its data or never had any: an old leader may still believe.
  local quarantine = math.max(tonumber(kept[2]) or 0, longest)
  local first, born_in = kept[10], kept[11]
  if not born or born > now then
    -- The promise that no leader can be is about this moment only.
    first = first_start and not kept[1] and not held
    born, born_in = now, process().id
    redis.call(
      'HSET', state, 'born', whole(born), 'quarantine', whole(quarantine), 'first', first and '1' or '', 'run', born_in
    )
  elseif quarantine ~= tonumber(kept[2]) then
    redis.call('HSET', state, 'quarantine', whole(quarantine))
  end

  local function is_own(name)
    return name and (name == holder or (only_one and instance(name) == instance(holder)))
  end
  local own = held and is_own(held)

  -- A holder of another implementation is seen: since when, and until when its lease goes as far as is known. Where it has taken the lease
  -- from a leader, nobody knows at which instant after that one's last renewal.
  local function note_foreign(left)
    if not kept[1] or string.match(held, '#' .. string.rep('%x', 16) .. '$') then
      return
    end
    local last_seen = math.min(tonumber(kept[5]) or now, now)
    local was_led = kept[5] and kept[8] ~= kept[3] and last_seen + kept_ttl > now
    redis.call(
      'HSET', state, 'foreign_since', kept[12] or whole(was_led and last_seen or now), 'foreign_until',
      left < 0 and '' or whole(now + left)
    )
  end

  -- When the last lead ended, and the spans in which another implementation has led since.
  local function note_leads()
    local led_until = now
    if not held and kept[5] then
      led_until = math.min(kept[8] == kept[3] and tonumber(kept[9]) or tonumber(kept[5]) + kept_ttl, now)
    end
    local foreign = kept[14]
    local since = tonumber(kept[12])
    local till = math.min(tonumber(kept[13]) or now, now)
    if since and till > since then
      foreign = string.sub((foreign and foreign .. ' ' or '') .. 'f|' .. whole(since) .. '|' .. whole(till), -500)
    end
    if foreign then
      redis.call('HSET', state, 'led_until', whole(led_until), 'foreign', foreign)
      redis.call('HDEL', state, 'foreign_since', 'foreign_until')
    else
      redis.call('HSET', state, 'led_until', whole(led_until))
    end
  end

  if held and not own then
    local left = redis.call('PTTL', lease)
    if held ~= last_holder then
      note_foreign(left)
      return answer('held', held, left, left < 0 and 'endless' or 'foreign')
    end
    if kept_ttl > 0 and (left < 0 or left > kept_ttl) then
      -- The server's clock was set back, or somebody took the end away. No trust lasts longer than the lease was granted for.
      redis.call('PEXPIRE', lease, whole(kept_ttl))
      return answer('held', held, kept_ttl, 'clamped')
    end
    return answer('held', held, left)
  end

  local seen = tonumber(kept[5])
  if seen and seen > now then
    -- The clock was set back: the last renewal was no later than now.
    seen = now
    redis.call('HSET', state, 'seen', whole(seen))
  end
  local known_from = (first and first ~= '') and born or born + quarantine
  local wait = known_from - now
  local last = tonumber(redis.call('GET', fence)) or 0
  local released = kept[8] and kept[8] == kept[3]
  local led = seen and not released and known <= math.max(last, term)
  wait = math.max(wait, after_restart(born_in, seen, math.max(kept_ttl, ttl), math.max(kept_ttl, quarantine), led))
  -- A lease that is gone before its end, and was not given back, was taken away: its leader may still believe. One that asks again,
  -- and knows the term, believes no longer.
  if not held and not released and not (is_own(last_holder) and known >= term) then
    wait = math.max(wait, (seen or 0) + kept_ttl - now)
  end
  if wait > 0 then
    return answer('quarantined', held, wait)
  end

  -- A late ghost of an earlier campaign only answers.
  if term > known then
    return answer('stale', held, 0)
  end

  if not own and yield > 0 then
    local vacant = math.max(known_from, released and tonumber(kept[9]) or (seen or 0) + kept_ttl)
    local rest = math.min(vacant, now) + yield - now
    if rest > 0 then
      return answer('yielded', held, rest)
    end
  end

  -- The counter rises even when the data was lost: with the server's clock and with the highest that the caller has seen.
  term = math.max(last + 1, micros, known + 1)
  if term >= 2 ^ 53 then
    -- From here on numbers are no longer told apart.
    error({ err = 'ERR the counter of terms and fences is corrupt: delete ' .. fence .. ' and ' .. state })
  end
  note_leads()
  redis.call('SET', fence, whole(term))
  redis.call('SET', lease, holder, 'PX', whole(ttl))
  redis.call('HSET', state, 'holder', holder, 'term', whole(term), 'ttl', whole(ttl), 'seen', whole(now))
  redis.call('HDEL', state, 'released', 'vacant', 'asked')
  if kept[6] then
    redis.call('HSET', state, 'late_from', kept[6])
    redis.call('HDEL', state, 'drained')
  elseif not held then
    redis.call('HDEL', state, 'late_from')
  end
  return answer('acquired', holder, ttl)
end

-- What says that the whole server is the wrong one is no group's own.
local of_server = { READONLY = true, NOREPLICAS = true, MASTERDOWN = true, CLUSTERDOWN = true, LOADING = true }

local answers = {}
for i = 1, #KEYS / 3 do
  local key, arg = 3 * (i - 1), 7 * (i - 1)
  local ok, answer = pcall(
    campaign, KEYS[key + 1], KEYS[key + 2], KEYS[key + 3],
    ARGV[arg + 1], tonumber(ARGV[arg + 2]), tonumber(ARGV[arg + 3]), tonumber(ARGV[arg + 4]), ARGV[arg + 5] == '1',
    ARGV[arg + 6] == '1', tonumber(ARGV[arg + 7])
  )
  if not ok then
    local text = type(answer) == 'table' and answer.err or tostring(answer)
    text = string.match(text, '%u%u+ .*$') or text
    if of_server[string.match(text, '^%u+')] then
      return redis.error_reply(text)
    end
    answer = { 'failed', text }
  end
  answers[i] = answer
end
return answers

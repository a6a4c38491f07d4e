-- Names a page of the tasks of one status.
-- ARGV: 1 status, 2 task name or '', 3 due before ms or '', 4 where the page before ended or '', 5 the most that are looked at
-- Gives: where the next page begins or '', then tasks; those of another status or due time may be among them
local status, named, before, after, left = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local answer = { '' }
-- The place where the page before ended.
local function place_of(pattern)
  local one, two, three = match(after, pattern)
  if after ~= '' and not one then
    error({ err = 'CURSOR no page of ' .. status .. ' tasks ended at that place: begin with the first page' })
  end
  return one, two, three
end
local function is_named(lane)
  return named == '' or string.sub(lane, 3) == named
end

if status == 'pending' or status == 'failed' then
  local lanes = call('ZRANGE', prefix .. 'lanes', '0', '-1')
  table.sort(lanes)
  -- The lane, the minute and how many of it were told.
  local from_lane, from_minute, told = place_of('^([012]:%S+) (%-?%d+) (%d+)$')
  for _, lane in ipairs(lanes) do
    if is_named(lane) and (not from_lane or lane >= from_lane) then
      local same_lane = lane == from_lane
      local minutes = own('ZRANGE', prefix .. 'minutes:' .. lane, same_lane and from_minute or '-inf', '+inf', 'BYSCORE', 'LIMIT', '0', '1000')
      for i, minute in ipairs(minutes) do
        local skipped = same_lane and minute == from_minute and tonumber(told) or 0
        if before ~= '' and (tonumber(minute) or 0) * 60000 >= tonumber(before) then
          break
        end
        local some = own('ZRANGE', prefix .. 'due:' .. lane .. ':' .. minute, text_of(skipped), text_of(skipped + left - 1))
        for _, task in ipairs(some) do
          answer[#answer + 1] = task
        end
        left = left - #some
        if left <= 0 or i == 1000 then
          answer[1] = concat({ lane, minute, text_of(skipped + #some) }, ' ')
          return answer
        end
      end
    end
  end
elseif status == 'dispatched' then
  local from_lane, entry = place_of('^([012]:%S+) (%d+%-%d+)$')
  -- Not SORT, which counts as a write: a server without memory refuses it.
  local lanes = own('SMEMBERS', prefix .. 'seen')
  table.sort(lanes)
  for _, lane in ipairs(lanes) do
    if is_named(lane) and (not from_lane or lane >= from_lane) then
      local start = lane == from_lane and '(' .. entry or '-'
      local some = own('XRANGE', prefix .. 'stream:' .. lane, start, '+', 'COUNT', text_of(left))
      for _, one in ipairs(some) do
        answer[#answer + 1] = one[2][2]
      end
      left = left - #some
      if left <= 0 then
        answer[1] = lane .. ' ' .. some[#some][1]
        return answer
      end
    end
  end
elseif status == 'running' then
  -- By fence: as they began.
  local from, all = tonumber(place_of('^%d+$')) or 0, {}
  for _, task in ipairs(call('ZRANGE', running, '0', '-1')) do
    local fence = tonumber(match(call('HGET', attempts, task) or '', '^r %d+ (%d+) '))
    if fence and fence > from then
      all[#all + 1] = { fence, task }
    end
  end
  table.sort(all, function(a, b)
    return a[1] < b[1]
  end)
  for i = 1, math.min(left, #all) do
    answer[i + 1] = all[i][2]
  end
  if #all > left then
    answer[1] = text_of(all[left][1])
  end
elseif status == 'dead' then
  -- By when they died.
  local from, last = place_of('^(%d+) (.*)$')
  local rank = 0
  if from then
    rank = call('ZRANK', prefix .. 'dead', last)
    rank = rank and rank + 1 or call('ZCOUNT', prefix .. 'dead', '-inf', '(' .. from)
  end
  local some = call('ZRANGE', prefix .. 'dead', text_of(rank), text_of(rank + left))
  for i = 1, math.min(left, #some) do
    answer[i + 1] = some[i]
  end
  if #some > left then
    answer[1] = text_of(tonumber(call('ZSCORE', prefix .. 'dead', some[left]))) .. ' ' .. some[left]
  end
else
  -- By part, and in it by when they ended. What has ended once more is where it did so last.
  local e = parts_of_ended()
  local from_part, from, last = place_of('^(%d+) (%d+) (.*)$')
  from_part, from = tonumber(from_part) or 0, tonumber(from)
  for part = math.max(from_part, e.first), e.last do
    local all, known = {}, own('HGETALL', part_of(part))
    for i = 1, #known, 2 do
      local one = { tonumber(match(known[i + 1], '^%a+ (%d+)')), known[i] }
      if one[1] and (part > from_part or one[1] > from or (one[1] == from and one[2] > last)) then
        all[#all + 1] = one
      end
    end
    table.sort(all, function(a, b)
      return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2])
    end)
    local names = {}
    for i = 1, math.min(left, #all) do
      names[i] = all[i][2]
    end
    local later = part < e.last and find_all_ended(names, part) or {}
    for i = 1, #names do
      if not later[names[i]] then
        answer[#answer + 1] = names[i]
      end
    end
    left = left - #names
    if left == 0 then
      local more = #all > #names
      for next_part = part + 1, e.last do
        more = more or own('HLEN', part_of(next_part)) > 0
      end
      answer[1] = more and concat({ text_of(part), text_of(all[#names][1]), all[#names][2] }, ' ') or ''
      return answer
    end
  end
end
return answer
